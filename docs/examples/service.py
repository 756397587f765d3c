"""A web service with FastAPI, in as many processes as you like.

Each process has a client without a name. It publishes orders, and takes jobs from a work queue, so
each job goes to one of the processes. A name for all of them would be taken from one by the next.

    [channels."/jobs/**"]           # in holdfast.toml
    work_queue = true

    pip install fastapi uvicorn
    HOLDFAST_URL=http://127.0.0.1:8080 uvicorn service:app --workers 2
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, HTTPException, Request

from holdfast import Client, ClientError, Message


async def pack(message: Message) -> None:
    """Do a job; an exception becomes the reason of its dead letter."""
    print(f"process {os.getpid()} packs {message.data['item']}", flush=True)


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Keep a client as long as the process serves."""
    async with Client(os.environ["HOLDFAST_URL"]) as client:
        await client.subscribe("/jobs/orders", pack)
        app.state.client = client
        yield


app = FastAPI(lifespan=lifespan)


@app.post("/orders/{item}")
async def order(item: str, request: Request) -> dict[str, int]:
    """Publish an order; wait until the server has it, but no longer than a customer would."""
    client: Client = request.app.state.client
    try:
        await client.publish("/jobs/orders", {"item": item}, timeout_s=5)
    except ClientError as error:
        raise HTTPException(503, str(error)) from error
    return {"process": os.getpid()}
