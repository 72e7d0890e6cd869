"""Agents: what coding agents and the people who run them use beside the gates.

Belongs here: `settings` installs the hooks of their clients, `hooks` answers them, `shell` reads commands,
`mcp` is the server; briefs and instructions. Does not: the patches that agents propose (`patches`, `apply`),
and the limits of their commits (`policy`, `intents`).
"""
