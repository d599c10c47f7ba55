"""An agent on a client that was generated from /openapi.json: every way in which a question ends."""

import sys

from hub_client import AuthenticatedClient
from hub_client.api.default import (
    delete_agent_requests_one,
    get_agent_requests_one,
    post_agent_requests_invoke,
    post_agent_sessions,
    post_agent_sessions_events,
    post_agent_sessions_requests,
)
from hub_client.models import (
    Invocation,
    NewClarification,
    NewConfirmation,
    NewSession,
    NewSessionCompleted,
    NewToolCompleted,
)

address, token, agent_id = sys.argv[1:]
client = AuthenticatedClient(base_url=address, token=token)


def is_equal(found, wanted):
    assert found == wanted, f"{found!r} is not {wanted!r}"


def ask(action, **more):
    body = NewConfirmation.from_dict(
        {
            "kind": "confirmation",
            "tool": "transfer",
            "arguments": {"to": "Ann", "for": action},
            "action": action,
            "consequence": "The money is gone.",
            "risk_level": "high",
            "irreversible": True,
            "timeout_seconds": 300,
            "default_decision": "reject",
            **more,
        }
    )
    return send(body)


def send(body):
    answer = post_agent_sessions_requests.sync_detailed(session_id=session, client=client, body=body)
    assert answer.status_code in (200, 201), answer.content
    return answer.parsed.request_id


def outcome(request):
    answer = get_agent_requests_one.sync_detailed(request_id=request, client=client, wait=30)
    is_equal(answer.status_code, 200)
    return answer.parsed


def invoke(request, **arguments):
    body = Invocation.from_dict(arguments)
    return post_agent_requests_invoke.sync_detailed(request_id=request, client=client, body=body)


opened = post_agent_sessions.sync_detailed(
    client=client,
    body=NewSession.from_dict({"producer": {"agent_id": agent_id}, "summary_normal": "Paying."}),
)
is_equal(opened.status_code, 201)
session = opened.parsed.session_id

# Nothing runs while the question waits, nor after a no, a silence or a withdrawal.
waiting = ask("Wait for me")
is_equal(invoke(waiting).status_code, 409)
withdrawn = delete_agent_requests_one.sync_detailed(request_id=waiting, client=client)
is_equal(withdrawn.status_code, 204)
is_equal(outcome(waiting).status, "cancelled")
is_equal(invoke(waiting).status_code, 409)

rejected = ask("Reject this")
is_equal(outcome(rejected).status, "rejected")
is_equal(invoke(rejected).status_code, 409)

silence = ask("Say nothing", timeout_seconds=1)
is_equal(outcome(silence).status, "timed_out")
is_equal(invoke(silence).status_code, 409)

# A yes is for these arguments, once.
accepted = ask("Accept this")
is_equal(outcome(accepted).status, "accepted")
is_equal(invoke(accepted, arguments={"to": "Eve"}).status_code, 409)
granted = invoke(accepted)
is_equal(granted.status_code, 200)
is_equal(granted.parsed.arguments, {"to": "Ann", "for": "Accept this"})
is_equal(invoke(accepted).status_code, 409)


def emit(body):
    answer = post_agent_sessions_events.sync_detailed(session_id=session, client=client, body=body)
    assert answer.status_code == 201, answer.content


emit(
    NewToolCompleted.from_dict(
        {
            "type": "aaep:agent.tool.completed",
            "tool": "transfer",
            "tool_call_id": granted.parsed.tool_call_id,
            "status": "success",
            "summary_normal": "Sent.",
        }
    )
)
is_equal(outcome(accepted).status, "completed")

question = NewClarification.from_dict(
    {
        "kind": "clarification",
        "question": "Which colour?",
        "timeout_seconds": 60,
        "accepted_response_kinds": ["freetext"],
    }
)
answered = outcome(send(question))
is_equal(answered.response, "blue")

emit(
    NewSessionCompleted.from_dict(
        {"type": "aaep:agent.session.completed", "summary_normal": "Done."}
    )
)
