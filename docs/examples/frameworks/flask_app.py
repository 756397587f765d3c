"""A shop with Flask, whose pages hear of their orders: see docs/tutorials/frameworks.md."""

import os
import secrets
from pathlib import Path

from flask import Flask, Response, abort, jsonify, request, send_file, session

from docs.examples.frameworks import push, shop

app = Flask(__name__)
app.secret_key = os.environ.get("SESSION_KEY") or secrets.token_hex()
app.config["SESSION_COOKIE_SAMESITE"] = "Lax"


def subject() -> str:
    """Return the subject of the user who has logged in."""
    if "user" not in session:
        abort(401)
    return push.subject_of(session["user"])


@app.get("/")
def page() -> Response:
    """Show the page of a user's orders."""
    return send_file(Path(__file__).with_name("page.html"))


@app.post("/login")
def log_in() -> tuple[str, int]:
    """Begin a session of the application."""
    login = request.get_json()
    if not shop.is_user(login["name"], login["password"]):
        abort(403)
    session["user"] = login["name"]
    return "", 204


@app.get("/holdfast-token")
def holdfast_token() -> Response:
    """Give the user's browser a token for Holdfast, as a cookie that no script can read."""
    user = subject()
    response = jsonify(channel=push.channel_of(user))
    token = push.token_for(user)
    response.set_cookie(push.COOKIE, token, push.VALID_S, httponly=True, samesite="Lax")
    return response


@app.post("/orders")
def place_order() -> Response:
    """Place an order; tell the user's pages after the commit."""
    user, item = subject(), request.get_json()["item"]
    try:
        with shop.transaction() as db:
            number = shop.place(db, user, item)
    except shop.TooMany:
        abort(409, "too many orders")
    push.tell(user, {"order": number, "item": item, "state": "ordered"})
    return jsonify(order=number)
