#!/usr/bin/env bash
# Runs the review for action.yml. Inputs come by environment only, so that no
# text of a pull request is ever read as shell.
set -euo pipefail

args=(--format github --format "sarif=$SARIF" --format "json=$REPORT" --format "markdown=$COMMENT")
[ -z "${SOURCE:-}" ] || args+=(--source "$SOURCE")
[ -z "${BASELINE:-}" ] || args+=(--baseline "$BASELINE")
[ -z "${FAIL_ON_UNKNOWN:-}" ] || args+=("--fail-on-unknown=$FAIL_ON_UNKNOWN")
[ "${FAIL_ON_WARN:-false}" != true ] || args+=(--fail-on-warn)
[ -z "${POLICY_KEY:-}" ] || args+=(--policy-key "$POLICY_KEY")
[ -z "${POLICY_MIN_REVISION:-}" ] || args+=("--policy-min-revision=$POLICY_MIN_REVISION")
while IFS= read -r line; do
	[ -z "$line" ] || args+=(--policy "$line")
done <<<"${POLICY:-}"
while IFS= read -r line; do
	[ -z "$line" ] || args+=(--param "$line")
done <<<"${PARAMS:-}"

code=0
sandboxio policy check "${args[@]}" -- "$PLAN" || code=$?

# Codes other than these mean that nothing was judged, and that there is no
# report either.
decision=error
case $code in
0 | 2 | 3 | 4)
	cat "$COMMENT" >>"$GITHUB_STEP_SUMMARY"
	decision=$(sed -n 's/^  "decision": "\([a-z]*\)",$/\1/p' "$REPORT" | head -n 1)
	;;
esac
echo "decision=$decision" >>"$GITHUB_OUTPUT"
exit "$code"
