// What scenarios for Node have around them, in a page: the test lends it `askTest`.
export {Inbox, numbers} from "./inbox.js";

export const ask = (request) => window.askTest(request);
