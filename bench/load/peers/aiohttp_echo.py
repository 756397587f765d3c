"""Sends back what it receives, with aiohttp alone.  usage: aiohttp_echo.py PORT"""

import sys

from aiohttp import WSMsgType, web


async def post(request: web.Request) -> web.Response:
    return web.Response(body=await request.read(), content_type="application/json")


async def socket(request: web.Request) -> web.WebSocketResponse:
    response = web.WebSocketResponse()
    await response.prepare(request)
    async for message in response:
        if message.type is WSMsgType.TEXT:
            await response.send_str(message.data)
    return response


def main() -> None:
    try:
        import uvloop
    except ImportError:
        pass
    else:
        uvloop.install()
    application = web.Application()
    application.router.add_post("/post", post)
    application.router.add_get("/socket", socket)
    web.run_app(application, host="127.0.0.1", port=int(sys.argv[1]), print=None)


if __name__ == "__main__":
    main()
