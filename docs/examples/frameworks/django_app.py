"""A shop with Django, whose pages hear of their orders: see docs/tutorials/frameworks.md."""

import json
import os
import secrets
import sys
import uuid
from functools import partial
from pathlib import Path

import django
from django.apps import apps
from django.conf import settings
from django.contrib.auth import authenticate, login
from django.core.management import execute_from_command_line
from django.db import models, transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import path
from django.views.decorators.csrf import ensure_csrf_cookie
from django.views.decorators.http import require_POST

from docs.examples.frameworks import push

MOST = 10  # orders that a user may have
DATABASE = os.environ.get("DATABASE", "data/shop.db")

settings.configure(
    SECRET_KEY=os.environ.get("SESSION_KEY") or secrets.token_hex(),
    ALLOWED_HOSTS=["127.0.0.1"],
    ROOT_URLCONF=__name__,
    INSTALLED_APPS=[
        *(f"django.contrib.{name}" for name in ("auth", "contenttypes", "sessions")),
        __name__,
    ],
    MIDDLEWARE=[
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.middleware.csrf.CsrfViewMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
    ],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": DATABASE}},
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
)
django.setup()
# `migrate` looks for tables in a module `models`, but this application is a single file.
apps.get_app_config(__name__.rpartition(".")[2]).models_module = sys.modules[__name__]


class Order(models.Model):
    """An order of a user."""

    user = models.CharField(max_length=63)
    item = models.CharField(max_length=100)

    class Meta:
        """Its place in the database."""

        db_table = "orders"


class Outgoing(models.Model):
    """A message that the relay will publish, if the transaction that makes it commits."""

    key = models.UUIDField(default=uuid.uuid4)
    channel = models.TextField()
    data = models.JSONField()

    class Meta:
        """Its place in the database."""

        db_table = "outbox"


class TooMany(Exception):
    """A user has too many orders."""


def subject(request: HttpRequest) -> str:
    """Return the subject of the user who has logged in."""
    return push.subject_of(request.user.pk)


def page(request: HttpRequest) -> HttpResponse:
    """Show the page of a user's orders."""
    return HttpResponse(Path(__file__).with_name("page.html").read_bytes())


@require_POST
def log_in(request: HttpRequest) -> HttpResponse:
    """Begin a session of the application."""
    said = json.loads(request.body)
    user = authenticate(request, username=said["name"], password=said["password"])
    if user is None:
        return HttpResponse(status=403)
    login(request, user)
    return HttpResponse(status=204)


@ensure_csrf_cookie
def holdfast_token(request: HttpRequest) -> HttpResponse:
    """Give the user's browser a token for Holdfast, as a cookie that no script can read."""
    if not request.user.is_authenticated:
        return HttpResponse(status=401)
    user = subject(request)
    response = JsonResponse({"channel": push.channel_of(user)})
    token = push.token_for(user)
    response.set_cookie(push.COOKIE, token, push.VALID_S, httponly=True, samesite="Lax")
    return response


@require_POST
def place_order(request: HttpRequest) -> HttpResponse:
    """Place an order, with a job in the outbox; tell the user's pages after the commit."""
    if not request.user.is_authenticated:
        return HttpResponse(status=401)
    user, item = subject(request), json.loads(request.body)["item"]
    try:
        with transaction.atomic():
            order = Order.objects.create(user=user, item=item)
            said = {"order": order.pk, "item": item}
            transaction.on_commit(partial(push.tell, user, {**said, "state": "ordered"}))
            Outgoing.objects.create(channel=push.JOBS, data={**said, "user": user})
            if Order.objects.filter(user=user).count() > MOST:
                raise TooMany
    except TooMany:
        return JsonResponse({"error": "too many orders"}, status=409)
    return JsonResponse({"order": order.pk})


urlpatterns = [
    path("", page),
    path("login", log_in),
    path("holdfast-token", holdfast_token),
    path("orders", place_order),
]

if __name__ == "__main__":
    execute_from_command_line(sys.argv)
