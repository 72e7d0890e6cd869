"""Which shell commands are refused, which are left to the git hooks, and which nothing is said about."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchgate.agents.hooks.places import below_git
from patchgate.agents.shell import shell_rules
from patchgate.agents.shell.shell_rules import CommandRuling, judge_command
from patchgate.agents.shell.shell_text import read_shell
from patchgate.check.profiles import MARKERS, VARIABLE
from tests.amount import often

REFUSED = r"""
git commit --no-verify -m x
git commit -n -m x
git commit -[n] -m x
git commit -nm x
git commit -anm x
git commit -m x -n
git commit -m x --no-verif
git commit --no-veri
git commit --verify --no-verify
git commit --amend --no-edit -n
git commit -S -n
git  commit   -m  "a b"   --no-verify
git commit -m x \
  --no-verify
'git' 'commit' '--no-verify'
git com""mit --no-"verify"
/usr/bin/git commit -n
git -C sub commit -n
git --no-pager -c user.name=x commit -n
git merge --no-verify side
git merge -m text --no-verify side
git pull --no-verify
git push --no-verify
git push origin main --no-verif
git rebase --no-verify main
git am --no-verify x.mbox
git am -n x.mbox
git ci --no-verify
git -c core.hooksPath=/dev/null commit -m x
git -c CORE.HOOKSPATH= commit
git -c "core.hooksPath=/tmp/x" status
git --config-env=core.hooksPath=X commit
git -c patchgate.trustRef=refs/heads/x commit
git -c hook.patchgate.enabled=false commit
git -c alias.x='commit -n' x
git config core.hooksPath /tmp/hooks
git config --global core.hooksPath ''
git config --local core.hookspath .git/other
git config set core.hooksPath x
git config --unset core.hooksPath
git config unset core.hooksPath
git config --file .git/config core.hooksPath x
git config patchgate.trustRef refs/heads/mine
git config alias.ci 'commit --no-verify'
git config alias.ci '!git commit -n'
git config --remove-section core
PATCHGATE_SKIP=because git commit -m x
PATCHGATE_PROFILE=commit git commit -m x
export PATCHGATE_SKIP=because
env PATCHGATE_FULL=1 git commit
env -i PATCHGATE_SKIP=x git commit
declare -x PATCHGATE_SKIP=x
GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.hooksPath GIT_CONFIG_VALUE_0=/x git commit -m x
GIT_CONFIG_GLOBAL=/dev/null git commit
export GIT_CONFIG_PARAMETERS="'core.hooksPath=/x'"
echo ok && git commit -n -m x
false || git commit -n
git add . ; git commit -n
git add . & git commit -n
git status | git commit -n
(git commit -n)
{ git commit -n; }
if true; then git commit -n; fi
for f in a b; do git commit -n -m $f; done
! git commit -n
echo $(git commit -n)
echo `git commit -n`
echo "$(git commit -n)"
x=$(git commit -n)
cat <(git commit -n)
bash -c 'git commit -n -m x'
sh -c "git commit --no-verify"
bash -lc 'git commit -n'
eval git commit -n
eval "git commit -n"
sudo git commit -n
sudo -u me git commit -n
env A=b git commit -n
timeout 5 git commit -n
nice -n 5 git commit -n
nohup git commit -n
xargs git commit -n
command git commit -n
time git commit -n
find . -name x -exec git commit -n \;
function f { git commit -n; }
f() { git commit -n; }
case x in x) git commit -n;; esac
alias g='git commit -n'
trap 'git commit -n' EXIT
pushd .git/hooks; rm pre-commit
\git commit -n
git commit $'--no-verify'
git rebase -x 'git commit -n' main
git submodule foreach 'git commit -n'
echo x > .git/hooks/pre-commit
echo x >> .git/config
echo x >| .git/HEAD
: > .git/hooks/commit-msg
cat a 2> .git/hooks/x
tee .git/hooks/pre-commit < x
cp x .git/hooks/pre-commit
cp -t .git/hooks x
mv .git/hooks/pre-commit /tmp
mv x .git/hooks/
rm .git/hooks/pre-commit
rm -rf .git/hooks
rm -rf ./.git/hooks/*
rm -rf .GIT/hooks
chmod -x .git/hooks/pre-commit
ln -sf /bin/true .git/hooks/pre-commit
sed -i s/a/b/ .git/config
perl -pi -e 's/a/b/' .git/config
dd if=/dev/zero of=.git/hooks/pre-commit
touch .git/x
truncate -s 0 .git/hooks/pre-commit
install -m 755 x .git/hooks/pre-commit
cd .git && rm hooks/pre-commit
cd .git/hooks; rm *
rm "$PWD/.git/hooks/pre-commit"
find .git/hooks -type f -delete
cat > .git/hooks/pre-commit <<END
time -p git commit -n
coproc git commit -n
env - git commit
env -S'git commit -n'
env --split-string='git commit -n'
sudo -nu root git commit -n
sudo --user root git commit -n
xargs --max-args 1 git commit -n
exec -la foo git commit -n
bash -c -- 'git commit -n'
bash -c -e 'git commit -n'
bash -ceuo pipefail 'git commit -n'
echo $(( $(git commit -n) ))
echo $((git commit -n) )
git rebase -x'git commit --amend -n'
git rebase -ix 'git commit --amend -n'
git rebase --exe='git commit --amend -n'
git submodule foreach --recursive git commit -n
git patchgate -C . uninstall
mv --target-directory=.git/hooks x
cp -t.git/hooks x
cp --target=.git/hooks x
find . -name pre-commit -delete
find . -name 'pre-c*' -exec rm {} +
unset PATCHGATE_PROFILE
unset CLAUDECODE
env -u PATCHGATE_PROFILE git commit -m x
env -i git commit -m x
printf -v PATCHGATE_X %s 1
read -r PATCHGATE_X
export PATCHGATE_X
for PATCHGATE_SKIP in 1; do git commit -m x; done
git config --rename-section core other
git config --rename-section other core
git --exec-path=/tmp/x commit -m x
HOME=/tmp/x git commit -m x
env HOME=/tmp/x git commit -m x
git-commit -n
/usr/lib/git-core/git-commit -n
script -c 'git commit -n'
su -c 'git commit -n' me
flock f git commit --no-verify
for x in -n; do git commit $x; done
for f in .git/hooks/*; do rm "$f"; done
for f in a .git/hooks/x; do rm $f; done
bash -c "$(echo git commit -n)"
eval "$(printf 'git commit -n')"
git -c alias.z=commit z -n
git filter-branch --tree-filter 'rm -rf .git/hooks' HEAD
git difftool -x 'git commit -n' a b
git checkout main -- .git/x
git restore --source main .git/x
CLAUDECODE= git commit -m x
export CLAUDECODE=
env CODEX_THREAD_ID= git commit -m x
declare +x CLAUDECODE; git commit -m x
exec -c git commit -m x
ls .git/hooks | xargs rm
find .git/hooks -type f -print0 | xargs -0 rm -f
find . -name hooks -exec rm -r {} +
git patchgate install --trust-ref refs/heads/x
export HOME=/tmp/x && git commit -m x
HOME=/tmp/x; git commit -m x
export XDG_CONFIG_HOME=/tmp/x; cd src; git commit -m x
GIT_EDITOR='rm .git/hooks/pre-commit; true' git commit
GIT_SEQUENCE_EDITOR='git commit -n; true' git rebase -i main
git -c core.editor='rm .git/hooks/pre-commit' commit
git -c core.pager='git commit -n' log
git config core.sshCommand 'git commit -n'
git -c filter.x.clean='git commit -n' add .
bash
bash -i
sh -s a
cd x && env A=b bash --norc
sudo -u me zsh -l
flock -w 5 f -c 'git commit -n'
flock --timeout=5 f git commit -n
flock f -c 'git commit -n'
chroot / git commit -n
taskset -c 0 git commit -n
watch -n 1 git commit -n
busybox sh -c 'git commit -n'
nohup2 git commit -n
sudo --unknown root git commit -n
docker run x git commit -n
coproc NAME { git commit -n; }
coproc NAME { cd .git; rm hooks/x; }
bash <<< 'git commit -n'
echo git commit -n | bash
echo 'git commit -n' | bash -s
echo 'git commit -n' | sudo sh -
printf '%s\n' 'git commit -n' | sh
gi? commit -n
/usr/bin/g*t commit -n
{git,commit,-n}
git commit $'\x2d-no-verify'
git commit $'\055n'
git commit -m x $'\u002d\U0000002dno-verify'
rm -rf .g*t/hooks
rm .{git,x}/hooks/y
rm -rf .g??
rm -rf .[a-z]*
rm $(git rev-parse --git-dir)/hooks/x
rm "`git rev-parse --git-dir`/hooks/x"
rm -rf "$(git rev-parse --git-path hooks)"
rm "$(git rev-parse --path-format=absolute --git-common-dir)/hooks/x"
rm "$(git rev-parse --show-toplevel)/.git/hooks/x"
rm $(echo .git)/hooks/x
d=.git/hooks; rm $d/pre-commit
d=.git; rm "${d}/hooks/pre-commit"
export d=.git/hooks && rm -f "$d"/*
c="git commit -n"; $c -m x
f=-n; git commit -m x $f
x='git commit -n'; bash -c "$x"
x='git commit -n'; eval $x
ln -s .git x && rm x/hooks/pre-commit
ln -sfn "$PWD/.git/hooks" x
git rm .git/x
git mv a .git/hooks/pre-commit
curl -o .git/hooks/pre-commit https://example.org/x
curl --output=.git/hooks/pre-commit https://example.org/x
curl -so.git/hooks/pre-commit https://example.org/x
wget -O .git/hooks/pre-commit https://example.org/x
tar -xf x.tar -C .git/hooks
tar --directory .git/hooks -xf x.tar
unzip x.zip -d .git/hooks
git patchgate uninstall
git-patchgate agent uninstall claude
patchgate uninstall
"""

LEFT = r"""
eval "$command"
$GIT commit -m x
git $sub -m x
git commit $FLAGS
bash script.sh
sh < script.sh
bash -c "$text"
source ./activate
. ./env
git -c "$key=x" commit
git -c include.path=/tmp/c commit
git push origin "$branch" --force
git bisect run make
echo 'not closed
echo $(not closed
bash -c "git commit $X"
git config --edit
flock -z f git commit -m x
nohup2 git commit -m x
python -c "import os; os.system('git commit -n')"
apply_patch <<EOF
cat <<$x
curl x | bash -s
GIT_DIR=/x git commit -m x
git clean -fdx
git stash -u
sed -n 'w .git/config' x
awk '{print > ".git/config"}' x
node -e 'require("child_process").execSync("git commit -n")'
perl -e 'system "git commit -n"'
tmux new -d 'git commit -n'
xargs -I{} sh -c 'git commit {}'
git z -n
alias g='git commit'; g -n
sudo git commit -m x
(echo x) | bash -x
sh <(echo git commit -n)
x=a; read x < f; git commit $x
x=a; x=$(cat f); git commit $x
sudo --unknown root git commit -m x
bash --unknown x -c 'git commit -m x'
rm "$dir/hooks/pre-commit"
gi? commit -m x
rm $(cat f)/hooks/x
rm .g*$x/hooks/x
find . -type f -delete
xargs git commit -m x
python <<< "import os; os.system('git commit -n')"
awk -f x .git/config
vim .git/hooks/pre-commit
sponge .git/config
"""

ALLOWED = r"""
git status
git commit -m x
git commit -am "skip -n here"
git commit -mn
git commit -m -n
git commit -m "--no-verify is refused"
git commit --message --no-verify
git commit -F msg --author "A <a@b>"
git commit -m x -- -n
git commit --no-edit --amend
git commit -uno
git log --grep=--no-verify
git log --grep --no-verify
git merge -n side
git push -n origin main
git push -u origin feature
git pull --rebase
git rebase main
git config user.name x
git config core.hooksPath
git config --get core.hooksPath
git config get core.hooksPath
git config --list
git -c core.quotePath=false diff
git -c advice.detachedHead=false checkout x
git diff > out.patch
echo "git commit -n"
echo git commit -n
echo 'x > .git/hooks/y'
grep -rn -- --no-verify .
# git commit -n
cat .git/config
du -sh .git
stat .git/HEAD
tar czf x.tgz .git
git checkout main
git rm a
curl -o x https://example.org/git
jq . x.json
ls -la .git/hooks
cp .git/config /tmp/x
grep x .git/HEAD
echo x > .gitignore
rm .github/workflows/x.yml
sed -n 1p .git/config
cat a 2>/dev/null
ls 2>&1 | tee out
export PATH=$PATH:/x
GIT_AUTHOR_NAME=x git commit -m x
unset PATCHGATE_SKIP
alias ll='ls -l'
trap 'rm -f x' EXIT
trap - EXIT
python -c "print(1)"
npm test && npm run build
make -j4
for f in *.py; do python "$f"; done
find . -name '*.pyc' -delete
# git commit -n
ls # git commit -n
git commit -m "$MESSAGE"
git patchgate check --worktree
git patchgate explain deny-prefix
git patchgate explain uninstall
echo $((1 + (2 << 3)))
((x = 1 << 2)); ls
rm -f "$x" *.pyc build/*
rm -rf node_modules .venv
cp a.py src/
mv a b
for f in a b; do echo $f; done
sudo -u me -n ls
env -u X A=b python x.py
xargs -0 -n 1 grep x
HOME=/tmp/x npm test
time make
brew install git
git clean -n
git stash
git stash pop
find . -name '*.pyc' | xargs rm
for f in a b; do git add $f; done
git checkout HEAD -- .git/x
git checkout -- a
git lfs ls-files -n
git patchgate install
GIT_SEQUENCE_EDITOR='sed -i s/pick/edit/' git rebase -i main
GIT_EDITOR=true git commit --amend
git -c core.pager=cat log
git -c core.editor=true rebase --continue
git config credential.helper store
export HOME=/tmp/x && npm test
flock f make
flock -n 9
echo 'make' | bash
bash <<< 'make all'
rm -rf {build,dist}/*
rm -rf .cache* .py*
git commit -m $'a\nb -n'
coproc NAME { make; }
flock f git commit -m x
pip install git-lfs
find . -name '*.py' -exec sed -n 1p {} +
read -r line
bash --version
"""


HEREDOCS = (
    "git commit -m \"$(cat <<'END'\none -n\nit's (fine) --no-verify > .git/x\nEND\n)\"",
    "cat > notes <<'END'\ngit commit -n\nEND\nls",
    "cat > notes <<-END && ls\n\tgit commit -n\n\tEND\n",
    "cat <<A <<B\ngit commit -n\nA\ngit commit -n\nB\n",
)


def table(text: str) -> list[str]:
    """Part a table into commands; one goes on after a line that ends in a backslash."""
    return text.strip("\n").replace("\\\n", "\0").split("\n")


def judge(text: str) -> CommandRuling:
    text = text.replace("\0", "\\\n")
    return judge_command(text, lambda path: None if below_git(path) is None else "in git's own folder")


def test_the_table_has_at_least_eighty_commands() -> None:
    assert len(table(REFUSED)) + len(table(LEFT)) + len(table(ALLOWED)) >= 150


@pytest.mark.parametrize("text", table(REFUSED))
def test_a_command_that_bypasses_the_hooks_is_refused(text: str) -> None:
    found = judge(text).findings
    assert {each.rule for each in found} == {"command-bypasses-hooks"}
    assert all(each.hint for each in found)


@pytest.mark.parametrize("text", table(LEFT))
def test_a_command_that_is_not_understood_is_left_and_that_is_said(text: str) -> None:
    found = judge(text)
    assert not found.refusals
    assert found.left


@pytest.mark.parametrize("text", [*table(ALLOWED), *HEREDOCS])
def test_nothing_is_said_about_an_ordinary_command(text: str) -> None:
    found = judge(text)
    assert (found.refusals, found.forced, found.left) == ([], [], [])


def test_the_commands_in_a_here_document_that_a_shell_expands_are_read() -> None:
    assert judge("cat <<END\n$(git commit -n)\nEND\n").refusals
    assert not judge("cat <<'END'\n$(git commit -n)\nEND\n").refusals


@pytest.mark.parametrize(
    "text",
    [
        "bash <<'END'\ngit commit -n\nEND\n",
        "bash <<END\ngit commit -n\nEND\n",
        "bash -s a <<-END\n\tgit commit -n\n\tEND\n",
        "cat <<'END' | sh\ngit commit -n\nEND\n",
        "sh /dev/stdin <<END\ngit commit -n\nEND\n",
        "source /dev/stdin <<END\ngit commit -n\nEND\n",
        "bash <<END\n\tEND\ngit commit -n\nEND\n",
    ],
)
def test_the_here_document_of_a_shell_is_a_command(text: str) -> None:
    assert judge(text).refusals


ENVELOPE = "*** Begin Patch\n*** Add File: a b\n+$x\n*** End Patch\n"


@pytest.mark.parametrize(
    ("text", "folder"),
    [
        (f"apply_patch <<'EOF'\n{ENVELOPE}EOF\n", ""),
        (f"cd sub && apply_patch <<'EOF'\n{ENVELOPE}EOF\n", "sub"),
        (f"bash -lc \"apply_patch <<'EOF'\n{ENVELOPE.replace('$', chr(92) + '$')}EOF\n\"", ""),
        (f"apply_patch '{ENVELOPE}'", ""),
        (f"applypatch <<< '{ENVELOPE}'", ""),
        (f"cat <<'EOF' | apply_patch\n{ENVELOPE}EOF\n", ""),
        (f"sudo apply_patch <<'EOF'\n{ENVELOPE}EOF\n", ""),
    ],
)
def test_an_envelope_that_goes_through_the_shell_is_a_write(text: str, folder: str) -> None:
    found = judge(text)
    ((place, patch),) = found.patches
    assert (place, patch.rstrip("\n")) == (folder, ENVELOPE.rstrip("\n"))
    assert not found.left


@pytest.mark.parametrize(
    "text",
    [
        f"apply_patch <<EOF\n{ENVELOPE}EOF\n",
        "apply_patch < f",
        "apply_patch",
        f"cd \"$x\" && apply_patch <<'EOF'\n{ENVELOPE}EOF\n",
    ],
)
def test_an_envelope_that_only_the_shell_knows_is_left(text: str) -> None:
    found = judge(text)
    assert found.left
    assert not found.patches


def test_a_command_after_a_here_document_is_read() -> None:
    assert judge("cat > x <<END\ntext\nEND\ngit commit -n").refusals


@pytest.mark.parametrize(
    ("text", "remote", "refs"),
    [
        ("git push -f origin main", "origin", ("main",)),
        ("git push --force", "", ("",)),
        ("git push --forc origin HEAD:main", "origin", ("main",)),
        ("git push --force-with-lease origin a b", "origin", ("a", "b")),
        ("git push -fu origin main", "origin", ("main",)),
        ("git push origin +main", "origin", ("main",)),
        ("git push origin +HEAD:refs/heads/main", "origin", ("refs/heads/main",)),
        ("git push origin :main", "origin", ("main",)),
        ("git push --delete origin main", "origin", ("main",)),
        ("git push -d origin main", "origin", ("main",)),
        ("git push --mirror", "", None),
        ("git push --all -f origin", "origin", None),
        ("git push -o x -f origin main", "origin", ("main",)),
        ("git push -f origin HEAD", "origin", ("",)),
        ("git push origin '+refs/heads/*:refs/heads/*'", "origin", None),
        ("git push --recurse-submodules no -f origin main", "origin", ("main",)),
    ],
)
def test_a_forced_push_names_its_remote_and_refs(
    text: str, remote: str, refs: tuple[str, ...] | None
) -> None:
    (push,) = judge(text).forced
    assert (push.remote, push.refs) == (remote, refs)


def test_a_shift_in_arithmetic_is_no_here_document() -> None:
    assert judge("((x=1<<2))\ngit commit -n\n").refusals
    assert judge("echo $((x=1<<2))\ngit commit -n\n").refusals
    assert judge("((git commit -n) )").refusals


def test_the_variables_of_agents_are_those_by_which_a_commit_is_one() -> None:
    assert {VARIABLE, *MARKERS} == shell_rules._PROFILES


def test_a_command_longer_than_the_limit_is_left() -> None:
    assert judge("true; " * 20_000).left


def test_deep_nesting_is_left() -> None:
    assert judge("$(" * 500 + "git commit -n" + ")" * 500).left
    assert judge("${" * 40_000).left
    assert judge('"${' * 40_000).left
    assert judge("eval " * 30 + "x").left
    assert judge("x='eval $x;eval $x'; eval $x").left


def test_a_short_command_does_not_become_a_long_one() -> None:
    grown = judge("x=aaaaaaaaaa; " + "x=$x$x; " * 60 + 'rm "$x"')
    assert not grown.refusals
    assert judge("rm " + "{a,b}" * 10_000 + "; git commit -n").refusals
    assert judge("rm " + " ".join(f"f{number}" for number in range(9000))).left
    assert judge("rm " + " ".join(f"f{number}/.g*" for number in range(9000))).refusals


@settings(max_examples=often(2000), deadline=None)
@given(st.text(alphabet="git commit-nm\"'\\$`(){}<>|&;#\n =.ab", max_size=60))
def test_any_text_is_read_to_an_end(text: str) -> None:
    assert all(each.hint for each in judge(text).findings)


@settings(max_examples=often(1000), deadline=None)
@given(st.lists(st.text(alphabet="ab-=n. ", min_size=1, max_size=8), min_size=1, max_size=5))
def test_quoted_words_are_read_as_they_are(words: list[str]) -> None:
    text = " ".join("'" + word + "'" for word in words)
    (command,) = read_shell(text).commands
    assert list(command.words) == words
