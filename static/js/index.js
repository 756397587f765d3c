// All modules that need neither React nor Vue, by one name.
export {DeliveryExtension, Refuse} from "./delivery.js";
export {EventChannels} from "./event_channels.js";
export {listen} from "./events.js";
export {FayeExtension} from "./faye.js";
export {newKey, Outbox, PublishRefused} from "./outbox.js";
export {RequestError, RequestExtension} from "./request.js";
export {SessionChannels} from "./session_channels.js";
