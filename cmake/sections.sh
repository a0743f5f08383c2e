# For scripts of many steps (sourced by bash, after bootstrap.sh): `section <title> <command>...` runs and times each, and stops the script at the first
# that fails. However the script ends, a table of its sections comes last.

sections=()
section_title=
section_start=0

clock() { printf '%d:%02d' $(($1 / 60)) $(($1 % 60)); }

section() {
    section_title=$1
    section_start=$SECONDS
    shift
    printf '\n=== %s: %s\n' "$section_title" "$*"
    "$@"
    sections+=("$(printf '%8s  %s' "$(clock $((SECONDS - section_start)))" "$section_title")")
    section_title=
}

sections_table() {
    local status=$?
    if [[ -n $section_title ]]; then
        sections+=("$(printf '%8s  %s: FAILED' "$(clock $((SECONDS - section_start)))" "$section_title")")
    fi
    printf '\n'
    printf '%s\n' "${sections[@]}" "$(printf '%8s  %s' "$(clock $SECONDS)" "in all")"
    ((status == 0)) && printf '\nAll passed\n'
    return "$status"
}
trap sections_table EXIT
