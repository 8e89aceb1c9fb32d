"""The rules for prompts in English, in the order in which they are tried."""

from __future__ import annotations

from collections.abc import Callable

from claw.models.offline.making import (
    count_files,
    count_lines,
    create_file,
    find_definition,
    find_definition_and_uses,
    find_files,
    find_imports,
    find_place,
    find_text,
    find_todos,
    find_uses,
    grep,
    list_files,
    list_folder,
    list_named,
    outline,
    read_file,
    read_files,
    replace_text,
    run_command,
    search_in,
    show_code,
    show_definition,
    show_word,
    type_command,
)
from claw.models.offline.tasks import (
    Help,
    ListFiles,
    Overview,
    RunTests,
    Task,
)
from claw.models.offline.words import (
    FILE,
    FILE_EN,
    FILE_GROUP,
    IN,
    KIND,
    MORE,
    NAME,
    ONE_NAME,
    PATH,
    QUOTED,
    SCOPE,
    SORT,
    VERB,
    Groups,
    N,
)

__all__ = ["ACTIONS", "QUESTIONS"]

Rule = tuple[str, str, Callable[[Groups], Task | None]]

ACTIONS: tuple[Rule, ...] = (
    (
        "test",
        r"(?:run|execute|start)\s+(?:(?:the|all|my|our|your|its|all\s+the|this\s+project's)\s+)?"
        r"(?:unit\s+)?tests?(?:\s+suite)?[.!?]*",
        lambda g: RunTests(),
    ),
    (
        "run|exec",
        rf"(?:run|execute|exec)\s+(?:the\s+)?(?:shell\s+)?(?:command\s*:?\s+)?"
        rf"(?P<command>{QUOTED})(?:[\s,.]+(?:and|then|to)\b.*|\.)?",
        run_command,
    ),
    (
        "run|exec",
        r"(?:run|execute|exec)\s+(?:(?:the\s+)?(?:shell\s+)?command\s*:?\s+)?(?P<command>.+)",
        run_command,
    ),
    ("$|!", r"[$!]\s*(?P<command>[^\s].*)", run_command),
    (
        "replace|change|rename|substitute",
        rf"(?:replace|change|rename|substitute)\s+{MORE}(?:occurrences?\s+of\s+|text\s+|word\s+)?"
        rf"(?P<old>{QUOTED}|.+?)\s+(?:with|by|to|into)\s+(?P<new>{QUOTED}|.+?)"
        rf"(?:\s+everywhere)?\s+(?:in|inside|within)\s+(?:the\s+)?(?:file\s+)?"
        rf"(?P<file>{QUOTED}|\S+)\.?",
        replace_text,
    ),
    (
        "replace|change|rename",
        rf"in\s+(?:the\s+)?(?:file\s+)?(?P<file>{QUOTED}|\S+?),?\s+(?:replace|change|rename)\s+"
        rf"{MORE}(?:occurrences?\s+of\s+)?(?P<old>{QUOTED}|.+?)\s+(?:with|by|to|into)\s+"
        rf"(?P<new>{QUOTED}|.+?)",
        replace_text,
    ),
    (
        "create|make|write|generate",
        rf"(?:create|make|write|generate)\s+(?:a\s+|the\s+)?(?:new\s+)?(?:text\s+)?(?P<said>file\s+)?"
        rf"(?:called\s+|named\s+)?{FILE_GROUP}\s*,?\s+(?:(?:with|having)(?:\s+the)?"
        rf"(?:\s+(?:contents?|text|line|body))?|contain(?:ing|s)|(?:that|which)\s+(?:contains|says)"
        rf"|saying)(?:\s*:)?\s+(?P<text>.+)",
        create_file,
    ),
    (
        "write|put|save",
        rf"(?:write|put|save)\s+(?P<text>{QUOTED}|.+?)\s+(?:to|into|in)\s+(?:a\s+|the\s+)?(?:new\s+)?"
        rf"(?P<said>file\s+)?(?:called\s+|named\s+)?{FILE_GROUP}",
        create_file,
    ),
    (
        "create|make|touch",
        rf"(?:create|make|touch)\s+(?:a\s+|an\s+|the\s+)?(?:new\s+)?(?:empty\s+)?(?P<said>file\s+)?"
        rf"(?:called\s+|named\s+)?{FILE_GROUP}",
        create_file,
    ),
    ("", r"(?P<command>[a-z][\w-]*(?:\s.*)?)", type_command),
)

_HERE = (
    r"(?:here|(?:this|the|my|our)(?:\s+current)?\s+(?:directory|folder|dir|workspace|project"
    r"|repo(?:sitory)?))"
)
_DEFINED = r"(?:defined|declared|implemented|located|introduced|coming\s+from|come\s+from)"
_USED = r"(?:used|called|referenced|imported|invoked|mentioned)"
_WHERE = r"(?:(?:show|tell)\s+me\s+|find(?:\s+out)?\s+)?(?:where|in\s+(?:which|what)\s+files?)"

QUESTIONS: tuple[Rule, ...] = (
    (
        "hello|hi|hey|good|greetings",
        r"(?:hello|hi|hey|greetings|good\s+(?:morning|afternoon|evening|day))"
        r"(?:[\s,]+(?:there|claw|all|everyone|everybody))?",
        lambda g: Help(),
    ),
    (
        "help|abilities|you|use|ask|command",
        r"help(?:\s+me)?|commands|how\s+(?:do|can)\s+i\s+use\s+(?:this|you|it|claw)"
        r"|what\s+(?:can|should|do)\s+i\s+(?:do|ask|say|type)(?:\s+(?:here|you|now))?"
        r"|abilities|who\s+are\s+you|what\s+(?:can|do)\s+you\s+do|what\s+are\s+you(?:\s+able"
        r"\s+to\s+do)?|(?:show|list)(?:\s+me)?\s+(?:your\s+)?abilities",
        lambda g: Help(),
    ),
    (
        "todo|fixme|to-do",
        rf"(?:(?:find|list|show|search(?:\s+for)?|grep|what|where|are\s+there|how\s+many)\s+)?"
        rf"(?:are\s+)?{MORE}(?:open\s+|remaining\s+)?(?:todos?|fixmes?|to-dos?)"
        rf"(?:\s+and\s+fixmes?)?(?:\s+(?:comments?|notes?|are\s+left|left|are\s+there|remain))*"
        rf"{SCOPE}",
        find_todos,
    ),
    (
        "call|use|reference",
        rf"{_WHERE}(?:'s|\s+(?:is|are))\s+(?:the\s+)?(?:{KIND}\s+)?{ONE_NAME}(?:\s+{KIND})?"
        rf"\s+{_DEFINED}\s*,?\s*(?:and|;|\?)\s*(?:(?:who|what)\s+(?:calls?|uses?|references?)"
        rf"(?:\s+(?:it|them))?|where(?:'s|\s+(?:is|are))?\s+(?:it|they)?\s*(?:is|are)?\s*{_USED}"
        rf"|{_USED})",
        find_definition_and_uses,
    ),
    (
        "import",
        rf"(?:who|what|which\s+(?:code|files?|modules?))\s+(?:is\s+|are\s+)?import(?:s|ing)?\s+"
        rf"(?:the\s+)?(?:{KIND}\s+)?{ONE_NAME}(?:\s+{KIND})?{SCOPE}",
        find_imports,
    ),
    (
        "import",
        rf"{_WHERE}(?:'s|\s+(?:is|are))\s+{ONE_NAME}(?:\s+{KIND})?\s+imported",
        find_imports,
    ),
    (
        "call|use|reference|import|invoke",
        rf"(?:who|what|which\s+(?:code|functions?|files?))\s+"
        rf"(?:calls?|uses?|references?|imports?|invokes?)\s+(?:the\s+)?(?:{KIND}\s+)?{ONE_NAME}"
        rf"(?:\s+{KIND})?{SCOPE}",
        find_uses,
    ),
    (
        "use|call|reference|import|invoke|mention",
        rf"{_WHERE}\s+(?:is|are|do\s+we|does\s+it|do\s+they)\s+(?:the\s+)?(?:{KIND}\s+)?"
        rf"(?:{_USED}\s+|use\s+|call\s+)?{ONE_NAME}(?:\s+{KIND})?\s+{_USED}(?:\s+from|\s+in|\s+at)?",
        find_uses,
    ),
    (
        "use|call|reference|import|invoke|mention",
        rf"{_WHERE}\s+do\s+we\s+(?:use|call|import)\s+{ONE_NAME}",
        find_uses,
    ),
    (
        "use|call|reference|import|invoke|mention",
        rf"{_WHERE}\s+(?:the\s+)?(?:{KIND}\s+)?{ONE_NAME}(?:\s+{KIND})?\s+(?:is|gets)\s+{_USED}",
        find_uses,
    ),
    (
        "usage|use|call|reference",
        rf"(?:(?:find|show|list|get)\s+)?{MORE}(?:usages?|uses|callers?|references|calls"
        rf"|call\s+sites?)\s+(?:of|to|for)\s+(?:the\s+)?(?:{KIND}\s+)?{ONE_NAME}(?:\s+{KIND})?"
        rf"{SCOPE}",
        find_uses,
    ),
    (
        "project|repo|code|what is this",
        r"(?:what(?:'s|\s+is|\s+does)|explain|describe|summari[sz]e|tell\s+me\s+about)\s+"
        r"(?:this|the)(?:\s+\w+)?\s*(?:project|repo|repository|code\s?base|code)"
        r"(?:\s+(?:do|about|for))?|what\s+is\s+this",
        lambda g: Overview(),
    ),
    (
        "line",
        rf"(?:how\s+many|count|number\s+of)\s+(?:the\s+|of\s+)*lines(?:\s+of\s+code)?\s+"
        rf"(?:(?:does|do|are\s+(?:there\s+)?in|of|in|has)\s+)?{FILE_EN}(?:\s+(?:have|has|contain))?",
        count_lines,
    ),
    (
        "line",
        rf"(?:how\s+many|count|number\s+of)\s+(?:the\s+|of\s+)*lines(?:\s+of\s+(?:{SORT}\s+)?code)?"
        rf"(?:\s+(?:are|do)(?:\s+(?:there|we))?(?:\s+have)?)?{SCOPE}",
        count_lines,
    ),
    (
        "file",
        rf"(?:how\s+many|count|number\s+of)\s+{MORE}(?:{SORT}\s+)?files?"
        rf"(?:\s+(?:are|do|does|is)(?:\s+(?:there|we|it))?(?:\s+have)?)?{SCOPE}",
        count_files,
    ),
    (
        "here|directory|folder|dir|workspace|project|repo",
        rf"(?:show\s+(?:me\s+)?|tell\s+me\s+)?what(?:'s|\s+is|\s+(?:files\s+)?are|\s+do\s+we\s+have)?"
        rf"(?:\s+there)?\s+(?:in\s+{_HERE}|here)",
        lambda g: ListFiles(),
    ),
    (
        "directory|folder|dir|everything|here",
        rf"(?:list|ls|dir|tree|show(?:\s+me)?)\s+(?:(?:everything|all)(?:\s+in)?\s*)?"
        rf"(?:(?:the\s+)?contents?\s+of\s+)?(?:{_HERE})?",
        lambda g: ListFiles(),
    ),
    (
        "file",
        rf"(?:list|show|ls|find|what|which|display|get)\s+{MORE}(?:{SORT}\s+)?files?"
        rf"(?:\s+(?:are|do|exist)(?:\s+(?:there|we|you))?(?:\s+(?:have|see))?)?{SCOPE}",
        list_files,
    ),
    ("list|ls|glob", rf"(?:list|ls|glob)\s+{MORE}{SORT}{SCOPE}", list_files),
    ("tests", rf"(?:list|show|find)\s+{MORE}(?P<test>tests){SCOPE}", list_files),
    (
        "file",
        r"(?:find|list|show|search(?:\s+for)?)\s+(?:all\s+|the\s+|a\s+)*files?\s+"
        r"(?:named|called|matching|like)\s+(?P<text>\S+)",
        list_named,
    ),
    (
        "directory|folder",
        rf"(?:list|ls|dir|tree|show|what(?:'s|\s+is))\s+(?:in\s+)?{MORE}"
        rf"(?P<said>(?:contents?\s+of\s+)?(?:directory|folder)\s+){PATH}",
        list_folder,
    ),
    (
        "list|ls|dir|tree|show|what",
        rf"(?:list|ls|dir|tree|show|what(?:'s|\s+is)(?:\s+in)?)\s+(?:the\s+)?{PATH}"
        rf"(?P<said>\s+(?:directory|folder))?",
        list_folder,
    ),
    ("list|ls|dir|tree", r"ls|dir|tree|list", lambda g: ListFiles()),
    (
        "list|ls|dir|tree",
        rf"(?:list|ls|dir|tree)\s+{PATH}(?P<said>)",
        lambda g: list_folder(g | {"said": "yes"}),
    ),
    (
        "first|top|head|beginning|start|last|bottom|tail|end",
        rf"(?:{VERB}\s+)?(?:the\s+)?(?:"
        rf"(?P<start>first|top|head|beginning|start)|(?P<end>last|bottom|tail|end))"
        rf"\s*(?:few\s+|couple\s+of\s+)?(?:-?n?\s*{N})?\s*(?:lines?)?\s+(?:(?:of|in|from)\s+)?"
        rf"{FILE_EN}",
        read_file,
    ),
    ("head|tail", rf"(?:(?P<start>head)|(?P<end>tail))\s+-(?:n\s*)?{N}\s+{FILE_GROUP}", read_file),
    (
        "line",
        rf"(?:{VERB}\s+)?(?:the\s+)?lines?\s+(?P<from>\d+)(?:\s*(?:-|–|to|through|until)\s*"
        rf"(?P<until>\d+))?\s+(?:of|in|from)\s+{FILE_EN}",
        read_file,
    ),
    (
        ":|line",
        rf"(?:{VERB}\s+)?{FILE_EN}(?:\s*,?\s*lines?\s+|:)(?P<from>\d+)"
        rf"(?:\s*(?:-|–|to|through|until)\s*(?P<until>\d+))?",
        read_file,
    ),
    (
        "explain|describe|summar|analy|outline|review|tl;dr|what",
        rf"(?:(?:explain|describe|summari[sz]e|analy[sz]e|outline|review|tl;dr)(?:\s+(?:to\s+)?me)?"
        rf"|(?:give\s+(?:me\s+)?|show\s+(?:me\s+)?)?(?:a\s+|an\s+|the\s+)?(?:short\s+|brief\s+)?"
        rf"(?:summary|outline|overview)\s+of)\s+{FILE_EN}(?:\s+to\s+me)?",
        outline,
    ),
    ("what", rf"what\s+does\s+{FILE_EN}\s+do", outline),
    ("", rf"{VERB}\s+{FILE_EN}", read_file),
    (
        " and |,",
        rf"{VERB}\s+(?P<files>(?:{QUOTED}|{FILE})(?:(?:\s*,\s*(?:and\s+)?|\s+and\s+)(?:{QUOTED}|{FILE}))+)",
        read_files,
    ),
    (
        "what|content",
        rf"(?:what(?:'s|\s+is)\s+(?:in(?:side)?|written\s+in)|contents?\s+of|what\s+are\s+the\s+"
        rf"contents\s+of)\s+{FILE_EN}",
        read_file,
    ),
    ("what", rf"what\s+does\s+{FILE_EN}\s+(?:contain|say|look\s+like)", read_file),
    (
        " in | inside | of | from | under | within ",
        rf"{VERB}\s+(?:the\s+)?(?:(?P<kind>{KIND})\s+)?{ONE_NAME}(?:\s+{KIND})?\s+"
        rf"{IN}\s+(?:the\s+)?(?:file\s+)?{FILE_GROUP}",
        show_code,
    ),
    ("", rf"{VERB}\s+(?:the\s+)?{FILE_GROUP}(?:'s|\s)\s*{ONE_NAME}\s+(?P<kind>{KIND})", show_code),
    (
        "defin|declar|implement",
        rf"(?:(?:find|show|get|locate|give|open)\s+|(?:go|jump)\s+to\s+|what(?:'s|\s+is)\s+)?"
        rf"{MORE}(?:definitions?|declarations?|implementations?)\s+(?:of|for)\s+(?:the\s+)?"
        rf"(?:{KIND}\s+)?{ONE_NAME}(?:\s+{KIND})?{SCOPE}",
        find_definition,
    ),
    (
        "defin|declar",
        rf"(?:find\s+|show\s+|show\s+me\s+)?(?:the\s+)?{ONE_NAME}(?:'s)?\s+(?:definitions?|declaration)",
        find_definition,
    ),
    (
        "define|declare|implement",
        rf"(?:who|what|which\s+(?:file|module|code))\s+(?:defines|declares|implements)\s+"
        rf"(?:the\s+)?(?:{KIND}\s+)?{ONE_NAME}(?:\s+{KIND})?",
        find_definition,
    ),
    (
        "find|locate|search|look|where",
        rf"(?:find|locate|search(?:\s+for)?|look\s+for|where(?:'s|\s+is))\s+(?:the\s+)?"
        rf"(?:{KIND}\s+{ONE_NAME}|(?P<name2>{QUOTED}|{NAME})\s+{KIND})(?:\s+{_DEFINED})?",
        lambda g: find_definition({"name": g.get("name") or g["name2"]}),
    ),
    (
        "defin|declar|implement|locat|introduc|com",
        rf"{_WHERE}(?:'s|\s+(?:is|was|(?P<many>are|were)|do\s+we\s+define|does))\s+(?:the\s+|a\s+|an\s+)?"
        rf"(?:{KIND}\s+)?(?P<name>{QUOTED}|.+?)(?:\s+{KIND})?\s+(?:being\s+)?{_DEFINED}"
        rf"(?:\s+(?:at|in))?{SCOPE}",
        find_definition,
    ),
    (
        "defin|declar|implement|locat|introduc|com",
        rf"{_WHERE}\s+do\s+(?:we|you|they|i)\s+(?:define|declare|implement)\s+{ONE_NAME}",
        find_definition,
    ),
    (
        "defin|declar|implement|locat|introduc|com",
        rf"{_WHERE}\s+(?:the\s+)?(?:{KIND}\s+)?(?P<name>{QUOTED}|.+?)(?:\s+{KIND})?\s+"
        rf"(?:is|are|was|gets)\s+{_DEFINED}",
        find_definition,
    ),
    (
        "where|file",
        rf"{_WHERE}(?:'s|\s+(?:is|are))\s+(?:the\s+)?(?P<name>{QUOTED}|[^\s].*?)",
        find_place,
    ),
    (
        "file|code|module",
        r"(?:what|which)\s+(?:files?|code|modules?)\s+"
        r"(?:contains?|mentions?|has|have|includes?|says?)\s+(?P<text>.+)",
        find_files,
    ),
    (
        "file|line|code",
        r"(?:find|list|show|search(?:\s+for)?)\s+(?:me\s+)?(?:all\s+|the\s+)*(?:files?|lines?|code)\s+"
        r"(?:that\s+|which\s+)?(?:contain(?:s|ing)?|mention(?:s|ing)?|with|ha(?:s|ve|ving))\s+"
        r"(?P<text>.+)",
        find_text,
    ),
    ("grep|rg", r"(?P<pattern>grep|rg|ripgrep)(?:\s+-\w+)*(?:\s+for)?\s+(?P<text>.+)", grep),
    (
        "search",
        rf"search\s+(?:in\s+|through\s+)?(?:the\s+)?(?:folder\s+|directory\s+)?{PATH}\s+for\s+"
        rf"(?P<text>.+)",
        search_in,
    ),
    (
        "find|locate|hunt|look|search|list|show",
        r"(?:find|locate|hunt\s+for|look\s+(?:up|for)|search(?:\s+(?:the\s+)?(?:code|codebase|project"
        r"|repo|repository))?(?:\s+for)?|(?:list|show)\s+(?:me\s+)?(?:all\s+)?"
        r"(?:occurrences|mentions|matches)\s+(?:of|for))\s+(?P<text>.+)",
        find_text,
    ),
    (
        "",
        rf"(?:what(?:'s|\s+is|\s+does|\s+do)|{VERB}|how\s+(?:does|is))\s+(?:the\s+)?"
        rf"(?:(?P<kind>{KIND})\s+)?{ONE_NAME}(?:\s+(?P<kind2>{KIND}))?"
        rf"(?:\s+(?:do|does|work|works|mean|for|implemented))?",
        show_definition,
    ),
    (
        "what does|how does",
        rf"(?:what|how)\s+(?P<kind>does)\s+(?:the\s+)?{ONE_NAME}\s+(?:do|work)",
        show_definition,
    ),
    (
        "what",
        rf"what(?:'s|\s+is)\s+(?:in(?:side)?)\s+(?:the\s+)?(?P<name>{QUOTED}|{FILE})",
        show_word,
    ),
    (
        "show|read|open|view|cat|print|display|see|look|list|ls",
        rf"(?:show|read|open|view|cat|print|display|see|look\s+at)(?:\s+me)?\s+(?:the\s+)?"
        rf"(?P<name>{QUOTED}|{FILE}|{NAME})",
        show_word,
    ),
)
