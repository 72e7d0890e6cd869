"""`git patchgate fix`: what formatters and `fix` commands propose for the staged change, judged and written.

`run_fixes` runs them in a scratch tree; `line_merge` carries their hunks past unstaged edits; `plan_fix`
decides what is written to which file; `fix` does all of it. Only the transaction writes to the working
tree.
"""
