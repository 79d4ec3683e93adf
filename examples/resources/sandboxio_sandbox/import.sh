# <backend>/<id> of a detached sandbox that was made from a template. Docker's ids, all 64 digits of them, as sandboxio inspect --json
# lists them too:
#   docker ps --no-trunc --filter label=sandboxio.role=sandbox --filter label=sandboxio.detached=true --format '{{.ID}} {{.Names}}'
terraform import sandboxio_sandbox.notebook docker/0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
