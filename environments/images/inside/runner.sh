# Whether pytest runs, and what makes it run. For bash, read by steps of recipes.

# One small test outside of the tree; our reporters need pytest 3.0.
runs() {
    mkdir -p "$BUILD/probe"
    printf '[pytest]\n' > "$BUILD/probe/pytest.ini"
    printf 'def test_it(): assert True\n' > "$BUILD/probe/test_it.py"
    cd "$BUILD/probe"
    "$VIRTUAL_ENV/bin/python" -c 'import pytest, sys; v = pytest.__version__; sys.exit(int(v.split(".")[0]) < 3 and "error: pytest " + v)' \
        && "$VIRTUAL_ENV/bin/python" -m pytest -q -p no:cacheprovider test_it.py
}

# The newest pytest that may be had, and its plugins to fit; what else is installed stays where it can.
renew() {
    local name wanted=()
    for name in $("$VIRTUAL_ENV/bin/python" "$BUILD/lacking.py" --plugins); do wanted+=("$name"); done
    "$UV" pip install --python "$VIRTUAL_ENV" --no-sources 'pytest>=3' "${wanted[@]}" --upgrade-package pytest "${wanted[@]/#/--upgrade-package=}"
}

# Plugins that the tree's settings for pytest need, by the options and names that pytest does not know.
add_plugins() {
    local said option plugin
    said=$("$VIRTUAL_ENV/bin/python" -m pytest --markers 2>&1) && return
    for option in $(printf '%s\n' "$said" | sed -nE 's/.*(unrecognized arguments|Missing required plugins|Unknown config option): //p' | tr ', ' '\n\n'); do
        plugin=$(awk -v it="${option%%=*}" '$1 == it { print $2; exit }' "$BUILD/plugins.txt")
        case "$option" in pytest-*) plugin=$(printf %s "$option" | grep -oE '^[a-z0-9-]+') ;; esac
        if [ -n "$plugin" ]; then
            "$UV" pip install --quiet --python "$VIRTUAL_ENV" --no-sources "$plugin" || printf 'without:%s\n' "$plugin" >> "$BUILD/notes"
        fi
    done
}
