#!/usr/bin/env bash
# notebooks.sh FOLDER REMOTE COMMIT: put published notebooks on the branch gh-pages of a
# repository, from which Colab opens them: those of each commit under a path of its own, so
# that a page opens the notebook that it was built with; the newest as `latest`, too. Wheels
# stay for ever, since a notebook that a reader saved names the wheel it was made with; so
# does CNAME, of a site that was served from the branch. The branch has one commit.
set -euo pipefail
folder=$(cd "$1" && pwd) remote=$2 commit=$3
kept=20 # commits whose notebooks stay

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
git init --quiet --initial-branch=gh-pages
git config user.name "github-actions[bot]"
git config user.email "41898282+github-actions[bot]@users.noreply.github.com"
before=$(git ls-remote "$remote" refs/heads/gh-pages | cut -f 1) # fails if it cannot be asked
if [ -n "$before" ]; then
  git fetch --quiet --depth 1 "$remote" "$before"
  for name in CNAME commits.txt notebooks $(git show "$before:commits.txt" 2>/dev/null || true); do
    if git cat-file -e "$before:$name" 2>/dev/null; then
      git archive "$before" -- "$name" | tar --extract
    fi
  done
fi

mkdir -p notebooks
find notebooks -type f ! -name '*.whl' -delete # of an earlier layout
cp "$folder"/*.whl notebooks/
for place in "$commit" latest; do
  rm -rf "$place"
  mkdir -p "$place"
  cp "$folder"/*.ipynb "$place/"
  cp -R "$folder/executed" "$place/"
done
{ echo "$commit"; grep -xE '[0-9a-f]+' commits.txt 2>/dev/null | grep -vx "$commit" || true; } > newest.txt
tail -n "+$((kept + 1))" newest.txt | xargs -I{} rm -rf {}
head -n "$kept" newest.txt > commits.txt
rm newest.txt
touch .nojekyll
git add --all --force
git commit --quiet --message "Notebooks of $commit"
# Nobody else's work is overwritten: the push fails if the branch has moved meanwhile.
git push --quiet --force-with-lease="gh-pages:$before" "$remote" gh-pages
