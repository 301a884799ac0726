// Package upstream holds the connections with the servers behind the proxy: children over stdio, streamable HTTP,
// HTTP+SSE of 2024-11-05 and servers inside this process. It finds out which era an upstream speaks, starts it, watches
// it and replaces what dies. It moves frames and knows nothing of names, catalogs or downstream clients.
//
// An [Upstream] has one or more slots, each with at most one live connection. A caller acquires a [Lease] of a slot,
// starts an [Exchange] with a complete frame, and reads what comes back for it: notifications and requests that belong
// to it, in order, and its one answer. What an upstream says on its own account goes to the [Peer].
package upstream
