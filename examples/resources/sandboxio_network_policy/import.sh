# The policy itself, as one JSON object.
terraform import sandboxio_network_policy.closed '{"name":"closed","egress":[]}'
