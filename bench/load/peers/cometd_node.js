// CometD for Node on node:http.  usage: node cometd_node.js PORT
// (TIMEOUT: seconds that a connect is held; ACK=0 omits the ack extension)
'use strict';
const cometd = require('cometd-nodejs-server');
const ack = require('cometd-nodejs-server/ack-extension.js');
const http = require('http');

const port = parseInt(process.argv[2], 10);
const timeout = 1000 * parseFloat(process.env.TIMEOUT || '30');
const bayeux = cometd.createCometDServer({ timeout });
if (process.env.ACK !== '0') {
  bayeux.addExtension(new ack.AcknowledgedMessagesExtension());
}

// An application for bench.requests: an echo, and a service that passes requests and answers on.
const answerers = new Map();
const serve = (channel, listener) =>
  bayeux.createServerChannel(channel).addListener('message', (session, _, message, callback) => {
    listener(session, message.data);
    callback();
  });
serve('/service/echo', (session, data) => session.deliver(null, '/service/echo', data));
serve('/service/answerer', (session, name) => answerers.set(name, session));
serve('/service/ask', (session, { to, number }) => {
  answerers.get(to).deliver(null, '/service/ask', { from: session.id, number });
});
serve('/service/answer', (_, { from, number }) => {
  bayeux.getServerSession(from).deliver(null, '/service/answer', { number });
});

http.createServer(bayeux.handle).listen({ port, host: '127.0.0.1', backlog: 4096 });
