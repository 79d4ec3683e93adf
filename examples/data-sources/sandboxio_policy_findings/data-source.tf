# What the policy says of a manifest that another team wrote.
data "sandboxio_policy_findings" "theirs" {
  manifest = file("${path.module}/python.manifest.json")
}

check "theirs_is_allowed" {
  assert {
    condition     = !contains(["error", "deny"], data.sandboxio_policy_findings.theirs.decision)
    error_message = join("\n", [for f in data.sandboxio_policy_findings.theirs.findings : "${f.rule} ${f.path}: ${f.message}"])
  }
}
