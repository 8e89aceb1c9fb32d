"""What claw's own tests are made of, for the tests of whoever builds on it.

A scripted model, a strict model server, virtual time, the ports in memory, and the
suites that every adapter of a port has to pass. Names load when they are first used;
neither pytest nor hypothesis is needed to import any of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from claw.models.chaos import (
        ChaosModel,
    )
    from claw.models.classify import (
        classify_error,
    )
    from claw.models.decode import (
        decode as decode_stream,
    )
    from claw.models.encode import (
        encode_request,
    )
    from claw.models.script_files import (
        load_script,
    )
    from claw.models.scripted import (
        Gate,
        ScriptedModel,
        ScriptReply,
        calls,
        cut,
        fails,
        raw,
        refuses,
        says,
        waits,
    )
    from claw.testing.asserting import (
        assert_extends,
        assert_not_offered,
        assert_offered,
        assert_system_contains,
    )
    from claw.testing.checked_model import (
        CheckedModel,
    )
    from claw.testing.clock import (
        FakeClock,
    )
    from claw.testing.conformance import (
        ApproverSuite,
        BlobsSuite,
        ClockSuite,
        DiskSuite,
        HookRunnerSuite,
        JournalSuite,
        ModelClientSuite,
        ProcessesSuite,
        ThinkingSuite,
        ToolSetSuite,
        ToolSuite,
        WorkspaceSuite,
        a_request,
    )
    from claw.testing.disk import (
        FaultyDisk,
        Killed,
    )
    from claw.testing.doubles import (
        AllowAll,
        FakeHooks,
        MemoryBlobs,
        MemoryJournal,
        MemoryWorkspace,
        NoCompactor,
        NoHooks,
        NoRedactor,
        RecordingSink,
        ScriptedApprover,
        ToolList,
    )
    from claw.testing.harness import (
        Harness,
    )
    from claw.testing.matching import (
        Contract,
    )
    from claw.testing.pieces import (
        FakeTool,
        FixedPolicy,
        conversation,
    )
    from claw.testing.prompt_cache import (
        CacheSimulator,
    )
    from claw.testing.recording import (
        Recording,
        RecordingFailed,
    )
    from claw.testing.schedules import (
        ShuffledLoop,
        under_schedule,
    )
    from claw.testing.strict_server import (
        Received,
        ServerReply,
        StrictServer,
        answers,
        sent,
    )
    from claw.testing.validate import (
        validate_anthropic,
        validate_chat,
        validate_request,
        validate_responses,
    )

__all__ = [
    "AllowAll",
    "ApproverSuite",
    "BlobsSuite",
    "CacheSimulator",
    "ChaosModel",
    "CheckedModel",
    "ClockSuite",
    "Contract",
    "DiskSuite",
    "FakeClock",
    "FakeHooks",
    "FakeTool",
    "FaultyDisk",
    "FixedPolicy",
    "Gate",
    "Harness",
    "HookRunnerSuite",
    "JournalSuite",
    "Killed",
    "MemoryBlobs",
    "MemoryJournal",
    "MemoryWorkspace",
    "ModelClientSuite",
    "NoCompactor",
    "NoHooks",
    "NoRedactor",
    "ProcessesSuite",
    "Received",
    "Recording",
    "RecordingFailed",
    "RecordingSink",
    "ScriptReply",
    "ScriptedApprover",
    "ScriptedModel",
    "ServerReply",
    "ShuffledLoop",
    "StrictServer",
    "ThinkingSuite",
    "ToolList",
    "ToolSetSuite",
    "ToolSuite",
    "WorkspaceSuite",
    "a_request",
    "answers",
    "assert_extends",
    "assert_not_offered",
    "assert_offered",
    "assert_system_contains",
    "calls",
    "classify_error",
    "conversation",
    "cut",
    "decode_stream",
    "encode_request",
    "fails",
    "load_script",
    "raw",
    "refuses",
    "says",
    "sent",
    "under_schedule",
    "validate_anthropic",
    "validate_chat",
    "validate_request",
    "validate_responses",
    "waits",
]

_HOMES = {
    "RecordingFailed": "claw.testing.recording",
    "Recording": "claw.testing.recording",
    "assert_system_contains": "claw.testing.asserting",
    "assert_offered": "claw.testing.asserting",
    "assert_not_offered": "claw.testing.asserting",
    "assert_extends": "claw.testing.asserting",
    "classify_error": "claw.models.classify",
    "encode_request": "claw.models.encode",
    "ChaosModel": "claw.models.chaos",
    "Gate": "claw.models.scripted",
    "ScriptReply": "claw.models.scripted",
    "ScriptedModel": "claw.models.scripted",
    "calls": "claw.models.scripted",
    "cut": "claw.models.scripted",
    "fails": "claw.models.scripted",
    "load_script": "claw.models.script_files",
    "raw": "claw.models.scripted",
    "refuses": "claw.models.scripted",
    "says": "claw.models.scripted",
    "waits": "claw.models.scripted",
    "FakeClock": "claw.testing.clock",
    "ApproverSuite": "claw.testing.conformance",
    "BlobsSuite": "claw.testing.conformance",
    "ClockSuite": "claw.testing.conformance",
    "DiskSuite": "claw.testing.conformance",
    "HookRunnerSuite": "claw.testing.conformance",
    "JournalSuite": "claw.testing.conformance",
    "ModelClientSuite": "claw.testing.conformance",
    "ProcessesSuite": "claw.testing.conformance",
    "ThinkingSuite": "claw.testing.conformance",
    "ToolSetSuite": "claw.testing.conformance",
    "ToolSuite": "claw.testing.conformance",
    "WorkspaceSuite": "claw.testing.conformance",
    "a_request": "claw.testing.conformance",
    "FaultyDisk": "claw.testing.disk",
    "Killed": "claw.testing.disk",
    "AllowAll": "claw.testing.doubles",
    "FakeHooks": "claw.testing.doubles",
    "MemoryBlobs": "claw.testing.doubles",
    "MemoryJournal": "claw.testing.doubles",
    "MemoryWorkspace": "claw.testing.doubles",
    "NoCompactor": "claw.testing.doubles",
    "NoHooks": "claw.testing.doubles",
    "NoRedactor": "claw.testing.doubles",
    "RecordingSink": "claw.testing.doubles",
    "ScriptedApprover": "claw.testing.doubles",
    "ToolList": "claw.testing.doubles",
    "CheckedModel": "claw.testing.checked_model",
    "Harness": "claw.testing.harness",
    "Contract": "claw.testing.matching",
    "ShuffledLoop": "claw.testing.schedules",
    "under_schedule": "claw.testing.schedules",
    "FakeTool": "claw.testing.pieces",
    "FixedPolicy": "claw.testing.pieces",
    "conversation": "claw.testing.pieces",
    "CacheSimulator": "claw.testing.prompt_cache",
    "Received": "claw.testing.strict_server",
    "ServerReply": "claw.testing.strict_server",
    "StrictServer": "claw.testing.strict_server",
    "answers": "claw.testing.strict_server",
    "sent": "claw.testing.strict_server",
    "validate_anthropic": "claw.testing.validate",
    "validate_chat": "claw.testing.validate",
    "validate_request": "claw.testing.validate",
    "validate_responses": "claw.testing.validate",
}


_RENAMED = {"decode_stream": ("claw.models.decode", "decode")}


def __getattr__(name: str) -> Any:
    home, attribute = _RENAMED.get(name) or (_HOMES.get(name), name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(home), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
