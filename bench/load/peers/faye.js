// Faye on node:http.  usage: node faye.js PORT   (TIMEOUT: seconds that a connect is held)
'use strict';
const faye = require('faye');
const http = require('http');

const port = parseInt(process.argv[2], 10);
const timeout = parseFloat(process.env.TIMEOUT || '30');
const server = http.createServer((request, response) => {
  response.statusCode = 404;
  response.end();
});
new faye.NodeAdapter({ mount: '/faye', timeout }).attach(server);
server.listen({ port, host: '127.0.0.1', backlog: 4096 });
