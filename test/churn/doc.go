// Package churn lets many clients call through the real program while its servers are killed, frozen, restarted and
// configured anew, and looks for what is left over afterwards.
package churn
