"""The commands and their flags.

Light on purpose: `--help` and `--version` import click and nothing else. What a command needs is
imported when it is called.
"""

from __future__ import annotations

from typing import Any

import click

from claw.cli.options import (
    LIMITS,
    MODEL,
    OTHER,
    OUTPUT,
    PERMISSIONS,
    SESSION,
    Compaction,
    FileName,
    Positive,
    PromptOrCommand,
    as_json,
    at_home,
    flag,
    help_option,
    printing,
    shared,
    with_a_prompt,
)
from claw.version import __version__

__all__ = ["claw"]

NAMES_OF_MODELS = """\
Show the models that can be named, and local servers found.

\b
Where --model, /model and "model" in the settings want a name:
  opus                     an alias
  claude-..., gpt-...      a model whose name tells its maker
  groq/openai/gpt-oss-120b any model of a provider
  ollama/qwen3             any model of a server of this machine
  PROFILE/MODEL            a server from "providers" in your settings
  offline                  no model: no key, no network

Without a name: the model of the first provider in this list that has credentials.
Keys are read from the environment; none is ever shown.
"""

ABOUT_SESSIONS = """\
Look at kept sessions, mend them, delete them.

\b
  claw sessions                        those of this directory, newest first
  claw sessions list --all             those of all directories
  claw sessions list --search parser   those that speak of it
  claw sessions show latest            what was said in the newest one
  claw sessions verify                 whether all are well
  claw sessions prune --older-than 30d --dry-run

A session is named by its id, the beginning of it, `latest`, or the path of its file. To go on
with one: `claw --resume REF`, or `claw --resume REF --fork-session` with a copy.
"""

ABOUT_EXPORT = """\
Write a session as a document, or as its records.

\b
  claw export latest                         Markdown on stdout
  claw export latest --output talk.md        into a file
  claw export latest --format html -o t.html a page for a browser, in one file
  claw export latest --format atif -o t.json the Agent Trajectory Interchange Format
  claw export 20261130 --format jsonl        the records, one JSON object a line

Known secrets are taken out once more, as they were before the session was written. REF is an id,
the beginning of one, `latest`, or the path of a session's file.
"""


@click.group(
    name="claw",
    cls=PromptOrCommand,
    invoke_without_command=True,
    options_metavar="[OPTIONS]",
    subcommand_metavar="[PROMPT... | COMMAND]",
    add_help_option=False,
    context_settings={"max_content_width": 100},
    help="A coding agent for the terminal.\n\n"
    "Without a prompt it starts a conversation. With one, or with text piped in, it "
    "runs one turn and ends. Piped text (up to 10 MiB) is the prompt, or is added to it.",
)
@flag(
    OUTPUT,
    "print_mode",
    "-p",
    "--print",
    is_flag=True,
    help="Run one turn and end: all words are the prompt.",
)
@flag(
    OUTPUT,
    "--output-format",
    type=click.Choice(["text", "json", "stream-json"]),
    default="text",
    help="text: the answer; json: one object at the end; stream-json: an object a line.",
)
@flag(
    OUTPUT,
    "--include-partial-messages",
    is_flag=True,
    help="With stream-json: text as it comes, too.",
)
@flag(
    OUTPUT,
    "--json-schema",
    metavar="SCHEMA",
    help="The answer must be a JSON document of it: JSON, or a file.",
)
@flag(OUTPUT, "--compact", is_flag=True, help="Only the last answer, at the end.")
@flag(OUTPUT, "--verbose", is_flag=True, help="Show calls and results on stderr, also in a log.")
@flag(
    MODEL,
    "--model",
    metavar="MODEL",
    help="A model's name; `offline`, or `script:FILE` for one that plays a script.",
)
@flag(
    MODEL,
    "--fallback-model",
    multiple=True,
    metavar="MODELS",
    help="Asked in turn while the model is not available.",
)
@flag(
    MODEL,
    "--effort",
    type=click.Choice(["none", "minimal", "low", "medium", "high", "xhigh", "max"]),
    metavar="LEVEL",
    help="How much the model is to think: none, minimal, low, medium, high, xhigh or max.",
)
@flag(MODEL, "--system-prompt", metavar="TEXT", help="Instead of claw's own.")
@flag(MODEL, "--append-system-prompt", metavar="TEXT", help="After claw's own.")
@flag(
    SESSION,
    "-c",
    "--continue",
    "continue_",
    is_flag=True,
    help="Go on with the last session of this directory.",
)
@flag(
    SESSION,
    "-r",
    "--resume",
    metavar="REF",
    help="Go on with a session: an id, the beginning of one, `latest`, or a file.",
)
@flag(
    SESSION,
    "--fork-session",
    is_flag=True,
    help="With --continue or --resume: go on in a copy; the session itself stays as it is.",
)
@flag(SESSION, "--session-id", metavar="ID", help="The id of the new session, or of the copy.")
@flag(
    SESSION,
    "--no-session-persistence",
    is_flag=True,
    help="Keep nothing on disk.",
)
@flag(
    SESSION,
    "--record-wire",
    is_flag=True,
    help="Keep the bytes of every reply, too, as the server sent them.",
)
@flag(
    LIMITS,
    "--max-turns",
    type=click.IntRange(min=1),
    metavar="N",
    help="Steps: a response of the model and its calls.",
)
@flag(
    LIMITS,
    "--max-budget-tokens",
    type=click.IntRange(min=1),
    metavar="N",
    help="Tokens of all requests, in and out.",
)
@flag(
    LIMITS,
    "--max-budget-usd",
    type=Positive("dollars"),
    metavar="USD",
    help="What all requests may cost, by list prices.",
)
@flag(
    LIMITS,
    "--max-time",
    type=Positive("seconds"),
    metavar="SECONDS",
    help="How long it may take.",
)
@flag(
    LIMITS,
    "--auto-compact",
    type=Compaction(),
    metavar="N|off",
    help="Summarise what came before at N tokens, or at N % of the model's window up to 100.",
)
@flag(
    LIMITS,
    "--on-denied",
    type=click.Choice(["continue", "fail"]),
    default="continue",
    help="What a permission that nobody could give means for the turn.",
)
@flag(
    PERMISSIONS,
    "--permission-mode",
    metavar="MODE",
    help="default, acceptEdits, plan, read-only or bypassPermissions.",
)
@flag(
    PERMISSIONS,
    "--dangerously-skip-permissions",
    is_flag=True,
    help="The same as --permission-mode bypassPermissions.",
)
@flag(
    PERMISSIONS,
    "--allowedTools",
    "--allowed-tools",
    "allowed_tools",
    multiple=True,
    metavar="RULES",
    help="Run without asking: `Edit`, `Bash(git diff:*)`.",
)
@flag(
    PERMISSIONS,
    "--disallowedTools",
    "--disallowed-tools",
    "disallowed_tools",
    multiple=True,
    metavar="RULES",
    help="Never run.",
)
@flag(
    PERMISSIONS,
    "--tools",
    multiple=True,
    metavar="NAMES",
    help='The tools that are offered; "" for none.',
)
@flag(
    PERMISSIONS,
    "--add-dir",
    multiple=True,
    metavar="DIR",
    help="Another directory to work in.",
)
@flag(
    PERMISSIONS,
    "--allow-broad-cwd",
    is_flag=True,
    help="Work in the home directory or `/` without asking.",
)
@flag(OTHER, "--cwd", metavar="DIR", help="Work there instead of here.")
@flag(OTHER, "--settings", metavar="FILE", help="Settings to add: a file, or JSON.")
@flag(OTHER, "--debug", is_flag=True, help="Write a log; tell more when something breaks.")
@printing(lambda _: f"claw {__version__}", "--version", help="Show the version and exit.")
@help_option
@click.pass_context
def claw(ctx: click.Context, /, **given: Any) -> int:
    if ctx.invoked_subcommand is not None:
        return 0
    from claw.cli.launch import launch

    check = None
    if given["json_schema"] is not None:
        from claw.cli.answer_schema import SchemaAnswer, schema_from

        check = SchemaAnswer(schema_from(given["json_schema"]))
    return launch(ctx.args, given, near=_near_command, check=check)


@claw.command(help="Show the settings, each with the place it comes from.", add_help_option=False)
@shared
@help_option
@click.pass_context
def config(ctx: click.Context, /, **given: Any) -> int:
    from claw.cli.config_command import show_config

    return show_config(_with_outer(ctx, given))


@claw.command(help="Check that everything claw needs is there.", add_help_option=False)
@shared
@help_option
@click.pass_context
def doctor(ctx: click.Context, /, **given: Any) -> int:
    from claw.cli.doctor import examine

    return examine(_with_outer(ctx, given))


@claw.command(
    help=NAMES_OF_MODELS,
    short_help="Show the models that can be named, and local servers found.",
    add_help_option=False,
)
@shared
@help_option
@click.pass_context
def models(ctx: click.Context, /, **given: Any) -> int:
    from claw.cli.models_command import show_models

    return show_models(_with_outer(ctx, given))


@claw.group(
    help=ABOUT_SESSIONS,
    short_help="Look at kept sessions, mend them, delete them.",
    invoke_without_command=True,
    add_help_option=False,
)
@help_option
@click.pass_context
def sessions(ctx: click.Context) -> int:
    if ctx.invoked_subcommand is not None:
        return 0
    from claw.cli.sessions_command import show_list

    given = {"all_": False, "search": None, "output_format": None}
    return show_list(_with_outer(ctx, given))


@sessions.command("list", add_help_option=False)
@click.option("--all", "all_", is_flag=True, help="Of all directories, not only of this one.")
@click.option("--search", metavar="TEXT", help="Only where a title, prompt or answer has it.")
@as_json("json: one array.")
@at_home
@help_option
@click.pass_context
def sessions_list(ctx: click.Context, /, **given: Any) -> int:
    """List sessions, newest first.

    On a terminal as a table; in a pipe one line each, with tabs between id, time, turns,
    directory and title. One that is damaged is listed with what is wrong.
    """
    from claw.cli.sessions_command import show_list

    return show_list(_with_outer(ctx, given))


@sessions.command("show", add_help_option=False)
@click.argument("ref")
@as_json("json: one object a line for each record.")
@at_home
@help_option
@click.pass_context
def sessions_show(ctx: click.Context, /, **given: Any) -> int:
    """Show what was said: prompts, answers, calls and how they ended, turns, tokens, cost."""
    from claw.cli.sessions_command import show_session

    return show_session(_with_outer(ctx, given))


@sessions.command("rename", add_help_option=False)
@click.argument("ref")
@click.argument("title")
@at_home
@help_option
@click.pass_context
def sessions_rename(ctx: click.Context, /, **given: Any) -> int:
    """Give a session a title; without one, its first prompt is shown.

    \b
      claw sessions rename latest "the parser, second try"
    """
    from claw.cli.sessions_command import rename_session

    return rename_session(_with_outer(ctx, given))


@sessions.command("delete", add_help_option=False)
@click.argument("ref")
@click.option("--yes", "-y", is_flag=True, help="Without a question.")
@at_home
@help_option
@click.pass_context
def sessions_delete(ctx: click.Context, /, **given: Any) -> int:
    """Delete a session and all that belongs to it, for good.

    Not while another claw has it in use.
    """
    from claw.cli.sessions_command import delete_session

    return delete_session(_with_outer(ctx, given))


@sessions.command("verify", add_help_option=False)
@click.argument("ref", required=False)
@click.option("--all", "all_", is_flag=True, help="The sessions of all directories.")
@click.option("--salvage", is_flag=True, help="Keep all that can be read of a damaged one.")
@as_json("json: one array.")
@at_home
@help_option
@click.pass_context
def sessions_verify(ctx: click.Context, /, **given: Any) -> int:
    """Check sessions for damage: one, or all of this directory.

    The exit code is 1 where there is damage. With --salvage the records that can be read take the
    place of the damaged file, which stays beside them, and what is lost is told.

    \b
      claw sessions verify latest
      claw sessions verify latest --salvage
    """
    from claw.cli.sessions_command import verify_sessions

    return verify_sessions(_with_outer(ctx, given))


@sessions.command("prune", add_help_option=False)
@click.option("--older-than", required=True, metavar="AGE", help="45m, 12h, 30d or 8w.")
@click.option("--dry-run", is_flag=True, help="Only tell what would be deleted.")
@at_home
@help_option
@click.pass_context
def sessions_prune(ctx: click.Context, /, **given: Any) -> int:
    """Delete the sessions, of all directories, that nobody used for so long.

    With all that belongs to them: long outputs, torn and damaged parts. One that is in use stays.

    \b
      claw sessions prune --older-than 30d --dry-run
    """
    from claw.cli.sessions_command import prune_sessions

    return prune_sessions(_with_outer(ctx, given))


@claw.command(
    help=ABOUT_EXPORT,
    short_help="Write a session as a document, or as its records.",
    add_help_option=False,
)
@click.argument("ref")
@click.option("--output", "-o", type=FileName(), metavar="FILE", help="Instead of stdout.")
@click.option(
    "--format",
    "--output-format",
    "output_format",
    type=click.Choice(["markdown", "html", "atif", "jsonl"]),
    help="markdown: to read, the default; html: a page, as `claw view` shows; atif: a trajectory "
    "for evaluation tools; jsonl: the records.",
)
@click.option("--settings", metavar="FILE", help="Settings to add: a file, or JSON.")
@at_home
@help_option
@click.pass_context
def export(ctx: click.Context, /, **given: Any) -> int:
    from claw.cli.export_command import export_session

    return export_session(_with_outer(ctx, given))


@claw.command(add_help_option=False)
@click.argument("ref")
@click.option("--output", "-o", type=FileName(), metavar="FILE", help="Write the page there.")
@click.option("--no-open", is_flag=True, help="Only write the page.")
@as_json("json: one object with the path.")
@click.option("--settings", metavar="FILE", help="Settings to add: a file, or JSON.")
@at_home
@help_option
@click.pass_context
def view(ctx: click.Context, /, **given: Any) -> int:
    """Show a session in the browser: turns, calls, changes, decisions, tokens and cost.

    The page is one file that needs nothing else and asks nobody; known secrets are taken out.
    Without --output it goes to a new file for temporary things that only you can read. In a pipe,
    its path is printed.

    \b
      claw view latest
      claw view 20261130 --output session.html --no-open
    """
    from claw.cli.view_command import view_session

    return view_session(_with_outer(ctx, given))


@claw.command(add_help_option=False)
@with_a_prompt
@help_option
@click.pass_context
def route(ctx: click.Context, /, **given: Any) -> int:
    """Show the commands and tools that a prompt speaks of.

    One a line: kind, name, score (100 for a command called by its name, with the slash) and where
    it comes from, with tabs between. Nothing is run.
    """
    from claw.cli.engine_commands import run_route

    return run_route(_with_outer(ctx, given))


@claw.command("turn-loop", add_help_option=False)
@with_a_prompt
@click.option(
    "loops", "--max-turns", type=click.IntRange(min=1), metavar="N", help="How many, else 3."
)
@click.option(
    "--engine-max-turns",
    type=click.IntRange(min=0),
    metavar="N",
    help="How many turns the session accepts, else as many as the loop has.",
)
@click.option(
    "budget",
    "--max-budget-tokens",
    type=click.IntRange(min=1),
    metavar="N",
    help="Tokens of the whole session, in and out.",
)
@click.option("--structured-output", is_flag=True, help="Each turn as one JSON document.")
@click.option(
    "--route",
    type=click.Choice(["once", "each"]),
    default="once",
    help="each: every turn anew, also by what the last one said and used.",
)
@click.option("--script", metavar="FILE", help="Prompts of the later turns: lines, or a JSON list.")
@click.option("--persist", is_flag=True, help="Keep the session on disk.")
@click.option("--resume", metavar="REF", help="Go on with a session.")
@help_option
@click.pass_context
def turn_loop(ctx: click.Context, /, **given: Any) -> int:
    """Run several turns with the offline model: no network, no key, the same bytes every time.

    The first turn sends the prompt, later ones `PROMPT [turn N]`, or what the script says. The
    first turn that does not complete is the last one; the exit code is 0 all the same.

    \b
      claw turn-loop "find the session lock" --max-turns 3
      claw turn-loop "list the python files" --structured-output --output-format json
    """
    from claw.cli.engine_commands import run_turns

    return run_turns(_with_outer(ctx, given))


@claw.command(add_help_option=False)
@with_a_prompt
@help_option
@click.pass_context
def bootstrap(ctx: click.Context, /, **given: Any) -> int:
    """Run one turn with the offline model, keep its session, and print a report of all of it."""
    from claw.cli.engine_commands import run_bootstrap

    return run_bootstrap(_with_outer(ctx, given))


@claw.command("flush-transcript", add_help_option=False)
@with_a_prompt
@help_option
@click.pass_context
def flush_transcript(ctx: click.Context, /, **given: Any) -> int:
    """Run one turn with the offline model, and print the file in which it is kept."""
    from claw.cli.engine_commands import run_flush

    return run_flush(_with_outer(ctx, given))


@claw.command("load-session", add_help_option=False)
@click.argument("session", metavar="ID")
@as_json("json: prompts, outputs and stop reasons, too.")
@at_home
@help_option
@click.pass_context
def load_session(ctx: click.Context, /, **given: Any) -> int:
    """Show how much a stored session holds: its id, messages and tokens."""
    from claw.cli.engine_commands import run_load

    return run_load(_with_outer(ctx, given))


@claw.command(add_help_option=False)
@click.argument("ref")
@click.option("--live", metavar="PARTS", help="Any of tools,hooks,policy,prompt as of today.")
@click.option(
    "--on-divergence",
    type=click.Choice(["stop", "continue"]),
    help="stop at the first difference, the default, or go on after it.",
)
@click.option("--in-place", is_flag=True, help="Live tools and hooks change the real workspace.")
@click.option(
    "--html", type=FileName(), metavar="FILE", help="Write a page there: recorded and replayed."
)
@click.option("--view", is_flag=True, help="Show that page in the browser.")
@as_json("json: one object.")
@click.option("--settings", metavar="FILE", help="Settings to add for live parts: a file, or JSON.")
@at_home
@help_option
@click.pass_context
def replay(ctx: click.Context, /, **given: Any) -> int:
    """Run a recorded session again, without a model, and name what goes another way.

    Everything is lent from the recording: no network, no key, nothing of this machine. The exit
    code is 0 where all is the same, 5 where something differs; then the first difference is named
    by turn, step and field. With --live, parts are today's: your rules, hooks and instruction
    files are judged against what happened; tools run for real, in a copy of the workspace.

    \b
      claw replay latest
      claw replay latest --live policy,hooks
      claw replay latest --live tools --on-divergence continue --view
    """
    from claw.cli.replay_command import replay_recording

    return replay_recording(_with_outer(ctx, given))


def _with_outer(ctx: click.Context, given: dict[str, Any]) -> dict[str, Any]:
    """The options of a command, and those that stand before it."""
    outer: dict[str, Any] = {}
    around = ctx.parent
    while around is not None:
        outer = {**around.params, **outer}
        around = around.parent
    return {**outer, **given, **{name: outer[name] for name in outer if not given.get(name)}}


def _near_command(word: str) -> list[str]:
    """Commands that ``word`` may have been meant for, and what other programs call so."""
    import difflib

    names = {name: name for name in claw.commands} | {"help": "--help", "version": "--version"}
    near = difflib.get_close_matches(word.lower(), sorted(names), n=2, cutoff=0.7)
    return [names[name] for name in near]
