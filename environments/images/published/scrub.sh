# Leaves of an image what an agent may see: takes from it every repository that holds the task's commits, with what they
# hold of later work, and every text of a patch to the files that the reference changes. Runs as root, with git, in a
# container of a publisher's image, without the network. Variables: WORKDIR, COMMIT, OWN (a folder of ours for what is
# found), KEPT (where what no commit holds goes, as the work folder is emptied for each stage). $OWN/texts has an
# expression for each path that such a patch names.
set -uo pipefail
export LC_ALL=C HOME=$OWN GIT_CONFIG_NOSYSTEM=1
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE
printf '[safe]\n\tdirectory = *\n[core]\n\tfsmonitor = false\n\thooksPath = /dev/null\n' >"$OWN/.gitconfig"
cd -P -- "$WORKDIR" || exit 3
place=$PWD
[[ $place != / ]] || exit 3
find . \( -name __pycache__ -o -name .pytest_cache \) -type d -prune -exec rm -rf -- {} +
: >"$OWN/others"
: >"$OWN/doomed"
ids=("$COMMIT")
if [[ -e .git ]] && head=$(git rev-parse -q --verify 'HEAD^{commit}'); then
    ids+=("$head")
    git ls-files -z --others --directory >"$OWN/others" || exit 4
    git ls-files -z -s | while IFS= read -rd '' line; do
        if [[ $line == 160000* && -d ${line#*$'\t'} ]]; then printf '%s\0' "${line#*$'\t'}"; fi
    done >>"$OWN/others"
    for way in --absolute-git-dir --git-common-dir; do
        (cd -- "$(git rev-parse $way)" && printf '%s\0' "$(pwd -P)") >>"$OWN/doomed" || exit 4
    done
    alternates=$(git rev-parse --git-path objects/info/alternates)
    if [[ -f $alternates ]]; then
        while IFS= read -r objects; do
            if [[ -n $objects && $objects != \#* ]]; then (cd -- "$(dirname -- "$alternates")/.." && cd -- "$objects" && printf '%s\0' "$(pwd -P)") >>"$OWN/doomed"; fi
        done <"$alternates"
    fi
fi
# Repositories elsewhere that hold the task's commits: copies, caches of clones, with the files that are checked out.
find / -xdev -type f -name HEAD -print0 2>/dev/null | while IFS= read -rd '' head; do
    folder=${head%/HEAD}
    [[ -d $folder/objects && -d $folder/refs && $folder != "$place/.git" ]] || continue
    for id in "${ids[@]}"; do
        git --git-dir="$folder" cat-file -e "$id^{commit}" 2>/dev/null || continue
        above=${folder%/.git}
        if [[ $above == "$folder" || $place/ == "$above/"* || $above =~ ^(/(root|opt|etc|var|tmp|srv|mnt|(home|usr)(/[^/]+)?))?$ ]]; then
            above=$folder
        fi
        printf '%s\0' "$above"
        break
    done
done >>"$OWN/doomed"
# In the work folder a bundle may have any name; what the repository itself knows is a part of the beginning.
find / -xdev -type f \( -name '*.bundle' -o -path "$place/*" \) -print0 2>/dev/null | while IFS= read -rd '' file; do
    IFS= read -rd '' -n 15 begin <"$file"
    [[ $begin == '# v'[0-9]' git bundle' ]] || continue
    [[ $file == "$place"/* ]] && git ls-files --error-unmatch -- "$file" >/dev/null 2>&1 && continue
    printf '%s\0' "$file"
done >>"$OWN/doomed" 2>/dev/null
# Before anything is kept: what goes may lie among what no commit holds.
while IFS= read -rd '' doomed; do
    case $doomed in "" | / | "$place") exit 6 ;; esac
    rm -rf -- "$doomed" || exit 6
done <"$OWN/doomed"
rm -rf -- .git || exit 6
while IFS= read -rd '' other; do
    if [[ -e $other || -L $other ]]; then printf '%s\0' "$other"; fi
done <"$OWN/others" >"$OWN/left"
mkdir -p -- "$KEPT" || exit 5
xargs -0 -r cp -a --parents -t "$KEPT" -- <"$OWN/left" || exit 5
xargs -0 -r rm -rf -- <"$OWN/left" || exit 5
# Of other projects' repositories the files are kept, and no history.
find "$KEPT" -name .git -prune -exec rm -rf -- {} + || exit 5
find "$KEPT" -type f -name HEAD -print0 | while IFS= read -rd '' head; do
    if [[ -d ${head%/HEAD}/objects && -d ${head%/HEAD}/refs ]]; then rm -rf -- "${head%/HEAD}"; fi
done
# A search that grep cannot do finds nothing, as one without a hit: 1 is what it says of an empty file, and xargs says 123
# of files without a hit, or that went meanwhile, and more where grep was killed.
grep -alEZ '^' -- "$OWN/texts" >/dev/null 2>&1 || exit 7
grep -alEZ -f "$OWN/texts" </dev/null >/dev/null 2>&1
[[ $? == 1 ]] || exit 7
find / -xdev -path "$place" -prune -o -path "$OWN" -prune -o -type f -size -8192k -print0 2>/dev/null |
    xargs -0 -r grep -alEZ -f "$OWN/texts" -- 2>/dev/null >"$OWN/patches"
[[ ${PIPESTATUS[1]} == 0 || ${PIPESTATUS[1]} == 123 ]] || exit 7
xargs -0 -r rm -f -- <"$OWN/patches" || exit 6
sort -zu "$OWN/doomed" | tr -cd '\0' | wc -c
tr -cd '\0' <"$OWN/patches" | wc -c
rmdir -- "$KEPT" 2>/dev/null
rm -rf -- "$OWN" && [[ ! -e $place/.git ]]
