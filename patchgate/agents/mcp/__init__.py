"""The MCP server: `server` speaks the protocol, and starts a process for each call, which `call` answers.

`server` alone imports the SDK. `tools` only read, `changes` change something, `resources` are documents.
"""
