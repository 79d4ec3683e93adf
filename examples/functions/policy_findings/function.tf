# The built-in rules alone, without a configured provider: in a module's own
# validation, for one.
variable "manifest" {
  type = string

  validation {
    condition     = length([for f in provider::sandboxio::policy_findings(var.manifest) : f if f.effect == "deny"]) == 0
    error_message = "The built-in rules deny this manifest."
  }
}
