"""The command line: `claw`, its one-shot forms and its terminal."""
