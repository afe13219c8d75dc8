"""The far end of the channel: a shell script that runs commands inside the sandbox, with bash and coreutils alone.

Requests come on stdin, one line each, some followed by bytes:

    hello                asks whether the server is there: ready FOLDER. It does not speak unasked: Docker's client may
                         lose what comes before its first own byte
    run ID MARK LENGTHS  the lengths of a setup, a script and a stdin, which follow; begins a command
    kill ID              ends all that the command has started
    ping ID              asks whether its supervisor lives: alive, gone
    count ID             asks how many processes of earlier commands still run
    stream TOKEN         processes that have this value of PRCHAIN_STREAM, or an ancestor that has, are a stream's: they
                         are spared and not counted, whatever happens to commands
    unstream ID TOKEN    ends all processes of a stream
    end MARK             writes the mark, where the command's supervisor could not
    fin                  the mark was seen: whatever is still printed is thrown away

What commands print goes through a pipe to stdout, raw. We write the ID into it first (what comes before is a leftover),
and the supervisor the mark when the command ended. Both are random and passed to no command. Answers go to stderr, a
line each: ``ID done CODE KILLS`` (KILLS: processes that the kernel's memory limit ended so far), before it ``ID pipes
CODE,CODE...`` where a setup asks for it, ``ID alive``, ``ID gone``, ``ID killed LEFT``, ``ID count LEFT``, ``ID
ended LEFT``, ``ID crowded``, ``MARK cut``. The pipe and the `cat` at its end are used again unless a process that may
hold it is left; then another `cat` empties it, so that this process neither stops nor dies.

A stream's token is random, too, and no command has it. Without streams no variables of processes are read.

The loop uses builtins alone once a command began, so that it can kill where no process can be made any more. A process
belongs to the command if neither it nor an ancestor of it (the reaper of orphans apart) is older than the command: a
child in a session of its own, or one that two forks have cut off, still does. All of them are stopped before they are
killed, so that they cannot make others meanwhile. What earlier commands left is found alike: neither it nor an ancestor
is older than this server.

A fork bomb that a command left behind would take the processes that the next one needs, and a bash that cannot fork
ends. So before a command, where three quarters of the limit are taken, or a quarter while forks were refused, all
that earlier commands left is killed. After a command no process is made there: its pipe is left as it is until the next
one.

Reading /proc is the dearest thing that a script does here, so that what is known of older processes is kept; the time
of a process's start tells it from a later one with its number.

Bash facts that this stands on: ``read -N`` takes no byte too much from a pipe; traps are not inherited, ignored signals
are; with ``set -m`` every child has a process group of its own, so that ``kill 0`` in a command does not hit us.
"""

from __future__ import annotations

SCRIPT = r"""
reaper=$1 folder=$2 most=$3
had_locale=${LC_ALL+yes} locale=${LC_ALL-}
unset LC_ALL; LC_ALL=C
trap : PIPE
{ mkdir -p "$folder" && : >"$folder/input"; } 2>/dev/null || { folder=/dev/shm/.prchain; mkdir -p "$folder"; }
exec {idle}<> <(:)
pump= supervisor= w= refused=0 unfinished=
declare -A old base parent began state drains streams owner

session='
[[ ${PRCHAIN_BASH_ENV-} ]] && { BASH_ENV=$PRCHAIN_BASH_ENV; source "$BASH_ENV"; } || unset BASH_ENV
__session=${PRCHAIN_SESSION-} __setup=${PRCHAIN_SETUP-} __pipes=${PRCHAIN_PIPES-}
unset PRCHAIN_SESSION PRCHAIN_SETUP PRCHAIN_BASH_ENV PRCHAIN_PIPES
if [[ $__session ]]; then
  source "$__session" 2>/dev/null || mapfile -t __names < <(compgen -e)
  eval "$__setup"
fi
__save() {
  local code=$? codes=("${PIPESTATUS[@]}") name
  [[ -f $__pipes ]] && printf "%s " "${codes[@]}" >|"$__pipes"
  [[ $__session ]] || exit "$code"
  { for name in "${__names[@]}"; do [[ -v $name ]] || echo "unset $name"; done
    export -p; declare -p __names; printf "cd -- %q\n:\n" "$PWD"
  } >|"$__session"
  exit "$code"
} 2>/dev/null
trap __save EXIT
'

list() {
  local path pid line
  parent=() began=() state=()
  for path in /proc/[0-9]*; do
    pid=${path#/proc/} line=
    { IFS= read -rd '' line <"$path/stat"; } 2>/dev/null
    [[ $line ]] || continue
    set -- ${line##*) }
    state[$pid]=$1 parent[$pid]=$2 began[$pid]=${20}
  done
}

remember() {
  local path pid line
  for path in /proc/[0-9]*; do
    pid=${path#/proc/} line=
    [[ $pid == 1 || $pid == $$ || ${old[$pid]-} ]] && continue
    { IFS= read -rd '' line <"$path/stat"; } 2>/dev/null
    set -- ${line##*) }
    [[ $line ]] && old[$pid]=${20}
  done
}

find_stream() {
  local line
  [[ ${owner[$1]+known} ]] && { stream=${owner[$1]}; return; }
  stream=
  { while IFS= read -rd '' line; do
      [[ $line =~ ^PRCHAIN_STREAM=([0-9a-f]+)$ ]] || continue
      [[ ${streams[${BASH_REMATCH[1]}]-} ]] && stream=${BASH_REMATCH[1]}
      break
    done <"/proc/$1/environ"
  } 2>/dev/null
  owner[$1]=$stream
}

find_victims() {
  local pid at stream
  local -n older=$1
  local wanted=${2-}
  victims=() owner=()
  list
  for pid in "${!parent[@]}"; do
    [[ $pid == 1 || $pid == $$ || $pid == "$supervisor" || $pid == "$pump" || ${state[$pid]} == [ZX] ]] && continue
    [[ ${drains[$pid]-} && ${parent[$pid]} == $$ ]] && continue
    at=$pid stream=
    while [[ $at != $$ && $at != "$reaper" ]]; do
      [[ ${at:-0} == 0 ]] && continue 2
      ((${#streams[@]})) && { find_stream "$at"; [[ $stream ]] && break; }
      [[ ! $wanted && ${older[$at]-} == "${began[$at]-none}" ]] && continue 2
      at=${parent[$at]-}
    done
    [[ $stream == "$wanted" ]] && victims+=("$pid")
  done
}

reap() {
  local round count=-1
  for ((round = 0; round < 500; round++)); do
    find_victims old "${1-}"
    ((${#victims[@]})) || break
    kill -STOP "${victims[@]}" 2>/dev/null
    ((${#victims[@]} == count || round > 50)) && kill -KILL "${victims[@]}" 2>/dev/null
    count=${#victims[@]}
    ((round > 2)) && read -rt 0.01 -u "$idle"
  done
}

count_kills() {
  local file word number
  kills=0
  for file in /sys/fs/cgroup/memory/memory.oom_control /sys/fs/cgroup/memory.events; do
    [[ -r $file ]] || continue
    while read -r word number; do [[ $word == oom_kill ]] && kills=$number; done <"$file"
    break
  done
}

is_crowded() {
  local at now= before=$refused
  set -- /proc/[0-9]*
  for at in /sys/fs/cgroup/pids /sys/fs/cgroup; do
    { read -r now <"$at/pids.current"; read -r _ refused <"$at/pids.events"; } 2>/dev/null
    [[ $now ]] && break
  done
  ((${now:=$#} * 4 > most * 3 || (refused > before && now * 4 > most)))
}

supervise() {
  local id=$1 mark=$2 setup=$3 input=$4 code
  shift 4
  exec 9>&2 2>/dev/null 1>&"$w" {w}>&- {idle}<&-
  local codes=
  { echo 800 >/proc/self/oom_score_adj; } 2>/dev/null
  [[ $had_locale ]] && export LC_ALL=$locale || unset LC_ALL
  set -m
  if eval "$setup"; then
    "$BASH" "$@" <"$input" 2>&1 9>&-
    code=$?
  else
    code=126
  fi
  if [[ -f ${PRCHAIN_PIPES-} ]]; then
    { read -rt 1 -n 300 codes <>"$PRCHAIN_PIPES"; } 2>/dev/null
    codes=${codes% }
    [[ $codes =~ ^[0-9\ ]+$ ]] && printf '%s pipes %s\n' "$id" "${codes// /,}" >&9
  fi
  count_kills
  printf '%s done %s %s\n' "$id" "$code" "$kills" >&9
  printf %s "$mark"
}

run() {
  local id=$1 mark=$2 setup= script= input=/dev/null
  (($3)) && IFS= read -rN "$3" setup
  (($4)) && IFS= read -rN "$4" script
  if (($5)); then
    [[ -d $folder ]] || mkdir -p "$folder"
    input=$folder/input
    head -c "$5" >"$input" || exit 1
  fi
  if [[ $reaper == 1 ]] && is_crowded; then
    old=()
    for pid in "${!base[@]}"; do old[$pid]=${base[$pid]}; done
    supervisor= pump=
    [[ $w ]] && exec {w}>&-
    w= unfinished=
    reap
    printf '%s crowded\n' "$id" >&2
  fi
  [[ $unfinished ]] && finish
  set -- -c "$script" bash
  if ((${#script} > 100000)); then
    [[ -d $folder ]] || mkdir -p "$folder"
    printf %s "$script" >"$folder/script" || exit 1
    set -- "$folder/script"
  fi
  remember
  [[ $w ]] || { exec {w}> >(exec cat 2>/dev/null); pump=$!; }
  printf %s "$id" >&"$w"
  supervise "$id" "$mark" "$setup" "$input" "$@" &
  supervisor=$!
}

finish() {
  local path pid rest status before=$refused
  unfinished=
  [[ $w ]] || return
  wait "$supervisor" 2>/dev/null
  if [[ $reaper == 1 ]] && is_crowded; then
    refused=$before unfinished=yes
    return
  fi
  if [[ $reaper == 1 ]] && kill -0 "$pump" 2>/dev/null; then
    for path in /proc/[0-9]*; do
      pid=${path#/proc/}
      [[ $pid == 1 || $pid == $$ || $pid == "$pump" || ${old[$pid]-} ]] || { pid=; break; }
    done
    [[ $pid ]] && return
  fi
  exec {rest}<"/proc/self/fd/$w" {w}>&-
  w=
  kill -KILL "$pump" 2>/dev/null
  wait "$pump" 2>/dev/null
  IFS= read -rN 1 -t 0.01 -u "$rest"
  status=$?
  if [[ $status != 1 ]]; then cat <&"$rest" >/dev/null 2>&1 & drains[$!]=1; fi
  exec {rest}<&-
}

list
for pid in "${!began[@]}"; do base[$pid]=${began[$pid]}; done
printf %s "$session" >"$folder/session"
while read -r word id mark setup_length script_length input_length; do
  case $word in
    run) run "$id" "$mark" "$setup_length" "$script_length" "$input_length" ;;
    kill) reap; printf '%s killed %s\n' "$id" "${#victims[@]}" >&2 ;;
    ping) kill -0 "$supervisor" 2>/dev/null && printf '%s alive\n' "$id" >&2 || printf '%s gone\n' "$id" >&2 ;;
    stream) streams[$id]=yes ;;
    unstream) reap "$mark"; unset "streams[$mark]"; printf '%s ended %s\n' "$id" "${#victims[@]}" >&2 ;;
    count) find_victims base; printf '%s count %s\n' "$id" "${#victims[@]}" >&2 ;;
    end) { printf %s "$id" >&"$w"; } 2>/dev/null || printf '%s cut\n' "$id" >&2 ;;
    fin) finish ;;
    hello) printf 'ready %s\n' "$folder" >&2 ;;
    *) exit 1 ;;
  esac
done
"""
