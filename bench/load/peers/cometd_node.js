// CometD for Node on node:http.  usage: node cometd_node.js PORT
// (TIMEOUT: seconds that a connect is held; ACK=0 leaves the ack extension out)
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
http.createServer(bayeux.handle).listen({ port, host: '127.0.0.1', backlog: 4096 });
