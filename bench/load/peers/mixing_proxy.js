// A proxy whose connections to the server carry the requests of all clients in turn.
// node mixing_proxy.js PORT SERVER_PORT
"use strict";
const http = require("http");

const [port, target] = process.argv.slice(2).map(Number);
const agent = new http.Agent({ keepAlive: true, maxSockets: Infinity, maxFreeSockets: 4096, scheduling: "fifo" });

http.createServer((request, response) => {
    const { method, url: path, headers } = request;
    const forwarded = http.request({ host: "127.0.0.1", port: target, method, path, headers, agent }, (reply) => {
        response.writeHead(reply.statusCode, reply.headers);
        reply.pipe(response);
    });
    forwarded.on("error", () => response.destroy());
    response.on("close", () => forwarded.destroy());
    request.pipe(forwarded);
}).listen(port, "127.0.0.1");
