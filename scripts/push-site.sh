#!/usr/bin/env bash
# push-site.sh [REMOTE]: pushes build-site, which `npm run docs` has made, to REMOTE (origin) as the
# branch gh-pages: a single commit, in the place of the one before.
set -euo pipefail
cd "$(dirname "$0")/.."
remote=${1:-origin}
touch build-site/.nojekyll # else the host leaves out files whose name begins with _
GIT_INDEX_FILE=$(mktemp -u)
export GIT_INDEX_FILE
trap 'rm -f "$GIT_INDEX_FILE"' EXIT
git --git-dir=.git --work-tree=build-site add --all --force .
tree=$(git write-tree)
export GIT_AUTHOR_NAME=allstop GIT_AUTHOR_EMAIL=noreply@github.com
export GIT_COMMITTER_NAME=allstop GIT_COMMITTER_EMAIL=noreply@github.com
commit=$(git commit-tree "$tree" -m "The documents of $(git describe --tags --always)")
git push --force "$remote" "$commit:refs/heads/gh-pages"
