"""Answer the hooks of coding agents: read the input (`hook_input`), judge the event (`events`), answer it.

Every answer pays for what is imported here, so the pipeline is imported where a change is really judged.
`cli.agent_hook` calls `events.answer_event`, within a time limit.
"""
