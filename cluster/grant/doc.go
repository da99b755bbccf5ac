// Package grant runs escrow on one node: it grants acquires from the node's wallet before
// they go to the leader, feeds the wallet with what the node applies, proposes what the
// wallet wants, and on the leader says which buckets nobody may have escrow of.
//
// What is *not* here: what is held and asked for (cluster/escrow), and whether there are
// tokens (fsm/escrow).
package grant
