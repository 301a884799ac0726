package wire

import "slices"

// Era is one of the two generations of the protocol.
type Era uint8

// The eras. Legacy revisions have a handshake and sessions, modern ones carry everything in each request.
const (
	Legacy Era = iota
	Modern
)

// String is the word used in metrics, logs and status.
func (e Era) String() string {
	if e == Modern {
		return "modern"
	}
	return "legacy"
}

// The protocol revisions.
const (
	Rev20241105 = "2024-11-05"
	Rev20250326 = "2025-03-26"
	Rev20250618 = "2025-06-18"
	Rev20251125 = "2025-11-25"
	Rev20260728 = "2026-07-28"

	LatestLegacy = Rev20251125
	LatestModern = Rev20260728
)

var legacyRevisions = []string{Rev20241105, Rev20250326, Rev20250618, Rev20251125}

// IsLegacy says whether v is a revision with a handshake that we speak.
func IsLegacy(v string) bool { return slices.Contains(legacyRevisions, v) }

// IsModern says whether v is a stateless revision that we speak.
func IsModern(v string) bool { return v == Rev20260728 }

// LooksModern says whether v claims to be a stateless revision, known to us or not: revisions are ISO dates.
func LooksModern(v string) bool { return v >= Rev20260728 }

// Revisions lists what we speak, newest first, as a client of either era may choose from.
func Revisions() []string {
	return []string{Rev20260728, Rev20251125, Rev20250618, Rev20250326, Rev20241105}
}

// Keys that modern requests and results carry in _meta (2026-07-28, basic/index "_meta").
const (
	MetaPrefix             = "io.modelcontextprotocol/"
	MetaProtocolVersion    = MetaPrefix + "protocolVersion"
	MetaClientCapabilities = MetaPrefix + "clientCapabilities"
	MetaClientInfo         = MetaPrefix + "clientInfo"
	MetaLogLevel           = MetaPrefix + "logLevel"
	MetaServerInfo         = MetaPrefix + "serverInfo"
	MetaSubscriptionID     = MetaPrefix + "subscriptionId"
	MetaRelatedTask        = MetaPrefix + "related-task"
)

// JSON-RPC and MCP error codes.
const (
	CodeParse               = -32700
	CodeInvalidRequest      = -32600
	CodeMethodNotFound      = -32601
	CodeInvalidParams       = -32602
	CodeInternal            = -32603
	CodeResourceNotFound    = -32002 // legacy only
	CodeURLElicitation      = -32042 // legacy only
	CodeHeaderMismatch      = -32020
	CodeMissingCapability   = -32021
	CodeUnsupportedRevision = -32022
)
