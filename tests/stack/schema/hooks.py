"""What Schemathesis cannot know.

* Rules that no schema says: what an address is, what a host is. Most well-formed bodies get
  words that keep them, or hardly one request would come past the validation.
* What there is: most well-formed requests ask for a thing that an answer has shown.
* How far it has come: the operations that have succeeded are written down.
* The key that it comes in with, and the relay that takes the messages, must live until the end.
"""

import collections
import itertools
import os
import uuid

import schemathesis
from schemathesis.core.parameters import ParameterLocation

KEPT = os.environ["POSTROOM_TEST_KEPT"].split(",")

ADDRESS = "ada@example.net"
GOOD = {
    **dict.fromkeys(["to", "cc", "bcc", "replyTo", "email", "address", "recipients", "recipient"], ADDRESS),
    **dict.fromkeys(["fromAddress", "senderAddresses"], "app@example.org"),
    # No relay but the sandbox has it.
    "from": "app@example.com",
    **dict.fromkeys(["domain", "senderDomains", "heloName", "recipientDomain"], "example.org"),
    **dict.fromkeys(["subject", "text", "html", "name", "fromName", "username", "password"], "words"),
    **dict.fromkeys(["expiresAt", "sendAt"], "2126-01-01T00:00:00Z"),
    **dict.fromkeys(["userEnvVar", "passwordEnvVar"], "SMTP_NONE"),
    "host": "mail.example.net",
    "networks": "192.0.2.0/24",
    "tags": "tag",
    "filename": "words.txt",
    "content": "d29yZHM=",
    "contentType": "text/plain",
    "contentId": "words",
}
# Of two that exclude each other, the second is left out.
EXCLUSIVE = [("username", "userEnvVar"), ("password", "passwordEnvVar"), ("expiresAt", "ttl")]
# Of these in a query, now the one is left out, now the other.
EITHER = ["dryRun", "wait"]
# A header's name and value, and the like, are free: any text is too much of a chance.
FREE = ["headers", "metadata"]

seen = collections.defaultdict(dict)
reached = set()
turns = collections.defaultdict(itertools.count)


def collection(path):
    return "/jobs" if path.startswith("/send") else path.split("/{")[0]


def repaired(name, value):
    if isinstance(value, dict):
        whole = {key: repaired(key, inner) for key, inner in value.items() if key not in FREE}
        for kept, dropped in EXCLUSIVE:
            if whole.get(kept) is not None:
                whole.pop(dropped, None)
        if "subject" in whole:
            whole["text"] = GOOD["text"]
        return whole
    if isinstance(value, list):
        return [repaired(name, inner) for inner in value]
    return GOOD.get(name, value) if isinstance(value, str) else value


def is_well_formed(case, part=None):
    if case.meta is None:
        return False
    part = part and case.meta.components.get(ParameterLocation(part))
    return (part or case.meta.generation).mode.is_positive


@schemathesis.hook
def before_call(context, case, kwargs):
    path = case.operation.path
    if all(name in (case.query or {}) for name in EITHER) and is_well_formed(case, "query"):
        del case.query[EITHER[next(turns["either"]) % len(EITHER)]]
    if is_well_formed(case) and next(turns[case.method, path]) % 4 > 0:
        if isinstance(case.body, dict):
            case.body = repaired("", case.body)
        case.headers.pop("Idempotency-Key", None)
        known = list(seen[collection(path)].values())
        if known and case.meta.phase.name.value != "stateful":
            for name in case.path_parameters:
                found = [thing[name] for thing in known if name in thing]
                if found:
                    case.path_parameters[name] = found[next(turns[path]) % len(found)]
    if case.method.upper() != "GET" and str(case.path_parameters.get("id")) in KEPT:
        case.path_parameters["id"] = str(uuid.uuid4())


@schemathesis.hook
def after_call(context, case, response):
    if not 200 <= response.status_code < 300:
        return
    operation = f"{case.operation.method.upper()} {case.operation.path}"
    if case.method.upper() == case.operation.method.upper() and operation not in reached:
        reached.add(operation)
        with open(os.environ["POSTROOM_TEST_REACHED"], "a") as file:
            print(operation, file=file)
    known = seen[collection(case.operation.path)]
    if case.method.upper() == "DELETE":
        gone = (case.path_parameters or {}).get("id")
        known.pop(gone, None) if gone else known.clear()
    try:
        shown = response.json()
    except ValueError:
        return
    things = shown if isinstance(shown, list) else [shown]
    known.update({thing["id"]: thing for thing in things if isinstance(thing, dict) and "id" in thing})
