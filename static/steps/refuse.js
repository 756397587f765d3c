// In a page of this server: here, in the console of the developer tools.
const {AckExtension, CometD} = await import("http://127.0.0.1:8080/static/cometd/cometd.js");
const {DeliveryExtension, Refuse} = await import("http://127.0.0.1:8080/static/js/delivery.js");

const cometd = new CometD();
cometd.registerExtension("ack", new AckExtension());
cometd.registerExtension("delivery", new DeliveryExtension());
cometd.configure({url: "http://127.0.0.1:8080/cometd"});
cometd.handshake(() => cometd.subscribe("/orders/try", ({data}) => {
    if (data.quantity < 1) {
        throw new Refuse("user.order.quantity", "the quantity is 0");
    }
    console.log("accepted", data);
}));
