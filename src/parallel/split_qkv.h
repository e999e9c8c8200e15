// Keys and values apart from the queries that they were projected with, for attention that sees the
// keys of several ranks or chunks one after another.
#pragma once

#include "ops/attention/attention.h"

namespace bloomery {

// Of qkv [tokens, groups, queries + 2, head_dim]: [tokens, groups * 2 * head_dim].
Tensor keys_and_values(Stream& stream, const Tensor& qkv, const AttentionOptions& options);

// Leaves the gradients of queries [tokens, heads * head_dim] and of keys and values where that of
// qkv is wanted, converted if need be.
void write_qkv_gradient(Tape& tape, const Slot& qkv, const Tensor& grad_q, const Tensor& grad_kv,
                        const AttentionOptions& options);

}  // namespace bloomery
