"""Links between processes of different hosts, over TCP and TLS.

The door's process connects to the port of the other host and says first, in two plain bytes, which
shard it wants. A process without a shard accepts there, and passes the connection on to the
worker of that shard. From then on, both ends speak TLS with certificates, and links are as between
workers of one host.
"""
