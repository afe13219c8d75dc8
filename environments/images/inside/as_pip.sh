# Puts a project in as pip does it, for build tools that know no editable installs (PEP 660), or where the day's build
# tools fail: the tools of the day first, then the project without what it needs, then what its metadata asks for.
# For bash, read by steps of recipes: as_pip REQUIREMENTS PATTERN..., with the patterns of the extras that are wanted.
as_pip() {
    local requirements=$1
    shift
    export UV_CONFIG_FILE=$BUILD/uv-builds.toml
    # uv replaces what is there only by what is newer; beside packages of the day newer tools do not start.
    "$UV" pip uninstall --quiet --python /opt/env setuptools wheel || true
    "$UV" pip install --quiet --python /opt/env pip setuptools wheel
    "$UV" pip install --python /opt/env --requirements "$BUILD/build.txt" || true
    # What a setup.py imports may stand in the lists alone (numpy, Cython).
    put_in || { alone --requirements "$requirements"; put_in; }
    of_metadata "$@" > "$BUILD/of_metadata.txt"
    uv_install --no-sources --requirements "$BUILD/of_metadata.txt" --requirements "$requirements"
}

# As uv installs. Where it cannot read the metadata of a package, it is told what that needs, and asked again; that is a
# matter of packages of before 2020 or so.
uv_install() {
    local round
    for round in 1 2 3 4 5; do
        if "$UV" pip install --python /opt/env "$@" 2>&1 | tee "$BUILD/said.txt"; then return 0; fi
        if [ -z "${UV_CONFIG_FILE:-}" ]; then return 1; fi
        /opt/env/bin/python "$BUILD/told_metadata.py" "$BUILD/said.txt" "$BUILD/uv.toml" "$BUILD/uv-builds.toml" || return 1
    done
    return 1
}

# What the projects need by the metadata that putting them in has made, with the extras that patterns name.
of_metadata() {
    local folder
    for folder in $FOLDERS; do (cd "$folder" && /opt/env/bin/python "$BUILD/wanted.py" . "$@") || true; done
}

# Puts the projects in by pip.
put_in() {
    local folder
    for folder in $FOLDERS; do pip_editable "$folder" || return 1; done
    touch "$BUILD/with_pip"
}

pip_editable() {
    local pip="/opt/env/bin/python -m pip --disable-pip-version-check"
    if [ -e "$1/setup.py" ] && $pip install --no-deps --no-build-isolation --no-use-pep517 --editable "$1"; then return; fi
    $pip install --no-deps --no-build-isolation --editable "$1"
}

# Installs packages, in $PATIENCE seconds at most, without the version that the project is told: they would take it for
# theirs.
alone() {
    env -u SETUPTOOLS_SCM_PRETEND_VERSION -u PBR_VERSION -u PDM_BUILD_SCM_VERSION \
        timeout "${PATIENCE:-1800}" "$UV" pip install --python /opt/env --no-sources "$@"
}

# Each line of a file alone, or else in any version; what cannot be had is noted, and where there is $PATIENCE what is not
# begun after twice that.
each_alone() {
    local line name
    while read -r line; do
        printf '%s\n' "$line" > "$BUILD/one.txt"
        if [ "$SECONDS" -gt "$((${PATIENCE:-100000} * 2))" ]; then
            name=
        elif alone --quiet --requirements "$BUILD/one.txt"; then
            continue
        else
            name=$(printf '%s\n' "$line" | sed -nE 's/^([A-Za-z0-9][A-Za-z0-9._-]*(\[[A-Za-z0-9,._-]+\])?) *(==|~=|<|!=|>|\().*/\1/p')
        fi
        if [ -n "$name" ] && alone --quiet "$name"; then
            printf 'relaxed:%s\n' "$(printf %s "$line" | tr -d '[:space:]')" >> "$BUILD/notes"
        else
            printf 'without:%s\n' "$(printf %s "$line" | tr -d '[:space:]')" >> "$BUILD/notes"
        fi
    done < "$1"
}
