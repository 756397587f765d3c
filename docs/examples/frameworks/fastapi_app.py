"""A shop with FastAPI, whose pages hear of their orders: see docs/tutorials/frameworks.md."""

import os
import secrets
from pathlib import Path
from typing import Annotated

from fastapi import BackgroundTasks, Depends, FastAPI, HTTPException, Request, Response
from fastapi.responses import FileResponse
from pydantic import BaseModel
from starlette.middleware.sessions import SessionMiddleware

from docs.examples.frameworks import push, shop

app = FastAPI()
session_key = os.environ.get("SESSION_KEY") or secrets.token_hex()
app.add_middleware(SessionMiddleware, secret_key=session_key, same_site="lax")


class Login(BaseModel):
    """What a user logs in with."""

    name: str
    password: str


class Order(BaseModel):
    """What a user orders."""

    item: str


def subject(request: Request) -> str:
    """Return the subject of the user who has logged in."""
    if "user" not in request.session:
        raise HTTPException(401)
    return push.subject_of(request.session["user"])


Subject = Annotated[str, Depends(subject)]


@app.get("/")
def page() -> FileResponse:
    """Show the page of a user's orders."""
    return FileResponse(Path(__file__).with_name("page.html"))


@app.post("/login", status_code=204)
def log_in(login: Login, request: Request) -> None:
    """Begin a session of the application."""
    if not shop.is_user(login.name, login.password):
        raise HTTPException(403)
    request.session["user"] = login.name


@app.get("/holdfast-token")
def holdfast_token(user: Subject, response: Response) -> dict[str, str]:
    """Give the user's browser a token for Holdfast, as a cookie that no script can read."""
    token = push.token_for(user)
    response.set_cookie(push.COOKIE, token, push.VALID_S, httponly=True, samesite="lax")
    return {"channel": push.channel_of(user)}


@app.post("/orders")
def place_order(order: Order, user: Subject, background: BackgroundTasks) -> dict[str, int]:
    """Place an order; tell the user's pages after the commit and the response."""
    try:
        with shop.transaction() as db:
            number = shop.place(db, user, order.item)
    except shop.TooMany:
        raise HTTPException(409, "too many orders") from None
    said = {"order": number, "item": order.item, "state": "ordered"}
    background.add_task(push.tell, user, said)
    return {"order": number}
