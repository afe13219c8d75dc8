# What the steps of the recipe for Node share; see environments/images/recipes/node.toml.

# Fetch the manager in a version, and make commands of it; the npm that comes with Node is there.
put_manager() {
    rm -rf /opt/env/manager /opt/env/bin
    mkdir -p /opt/env/bin
    if [ "$MANAGER@$1" != "npm@$NPM_VERSION" ]; then
        /usr/bin/python3 "$BUILD/npm_package.py" "$MANAGER_PACKAGE" "$1" /opt/env/manager
        local program
        program=$(node -p "const { bin } = require('/opt/env/manager/package.json'); typeof bin === 'string' ? bin : bin['$MANAGER']")
        printf '#!/bin/sh\nexec node "/opt/env/manager/%s" "$@"\n' "$program" > "/opt/env/bin/$MANAGER"
        chmod 755 "/opt/env/bin/$MANAGER"
    fi
    "$MANAGER" --version
}

# A registry that does not tell when releases came out has none for a day of the past.
undated=
if [ -n "$AS_OF" ] && [ "$(cat "$BUILD/registry" 2>/dev/null)" = undated ]; then undated=$AS_OF AS_OF=; fi

# Put the dependencies in; without what the try before has left.
add() {
    export npm_config_cache=$BUILD/npm-cache npm_config_store_dir=$BUILD/pnpm-store
    export YARN_CACHE_FOLDER=$BUILD/yarn-cache YARN_NODE_LINKER=node-modules YARN_IGNORE_PATH=1
    export npm_config_engine_strict=false npm_config_package_manager_strict=false
    export npm_config_manage_package_manager_versions=false
    export YARN_ENABLE_TELEMETRY=0 YARN_ENABLE_GLOBAL_CACHE=0 YARN_ENABLE_HARDENED_MODE=0
    find . -name node_modules -type d -prune -exec rm -rf {} +
    local options=()
    case $MANAGER in
    pnpm)
        options=(install --no-color)
        if [ -n "${not_frozen:-}" ]; then options+=(--no-frozen-lockfile --no-strict-peer-dependencies); else options+=(--frozen-lockfile); fi
        if [ -n "${without_scripts:-}" ]; then options+=(--ignore-scripts); fi
        pnpm "${options[@]}"
        ;;
    yarn)
        if [ "$MANAGER_PACKAGE" = yarn ]; then
            options=(install --non-interactive --no-progress --ignore-engines)
            if [ -z "${not_frozen:-}" ]; then options+=(--frozen-lockfile); fi
            if [ -n "${without_scripts:-}" ]; then options+=(--ignore-scripts); fi
        else
            options=(install)
            if [ -z "${not_frozen:-}" ]; then options+=(--immutable); else export YARN_ENABLE_IMMUTABLE_INSTALLS=0; fi
            if [ -n "${without_scripts:-}" ]; then export YARN_ENABLE_SCRIPTS=0; fi
        fi
        yarn "${options[@]}"
        ;;
    *)
        if [ -n "${without_scripts:-}" ]; then options+=(--ignore-scripts); fi
        if [ -n "${not_frozen:-}" ]; then
            if [ -n "$LOCK" ]; then options+=(--legacy-peer-deps); fi
            npm install --no-audit --no-fund --no-save --no-package-lock "${options[@]}" ${AS_OF:+--before="$AS_OF"} \
                || npm install --no-audit --no-fund --no-save --no-package-lock --legacy-peer-deps "${options[@]}" ${AS_OF:+--before="$AS_OF"}
            if [ -n "$AS_OF" ]; then echo dated >> "$BUILD/notes"; fi
            if [ -n "$undated" ]; then echo undated >> "$BUILD/notes"; fi
        else
            npm ci --no-audit --no-fund "${options[@]}"
        fi
        ;;
    esac
}

# Put packages in that a later landing begins to need, where modules lack them: all at once, or else each that can be
# had. What cannot be had is told.
add_wished() {
    local package
    mkdir -p "$BUILD/wished" node_modules
    if ! fetch_wished "$@"; then
        for package in "$@"; do
            if ! fetch_wished "$package"; then printf 'without:%s\n' "$package" >> "$BUILD/notes"; fi
        done
    fi
    for package in "$BUILD"/wished/node_modules/{*,@*/*,.bin/*}; do
        package=${package#"$BUILD/wished/"}
        if [ ! -e "$package" ] && [ -e "$BUILD/wished/$package" ]; then
            mkdir -p "${package%/*}"
            cp -a "$BUILD/wished/$package" "$package"
        fi
    done
}

fetch_wished() {
    (cd "$BUILD/wished" && npm_config_cache=$BUILD/npm-cache npm install --no-audit --no-fund --no-package-lock \
        --legacy-peer-deps --ignore-scripts --prefix "$BUILD/wished" "$@" ${AS_OF:+--before="$AS_OF"})
}
