// What follows the sums of a product: bias, activation or derivative, and the sum with what d
// holds, all in one pass over sums that are still in L2. For *_cpu.cpp files only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "ops/common/convert.h"
#include "ops/common/row_lanes.h"
#include "ops/matmul/matmul.h"

namespace bloomery {
namespace {

// A block of d: rows [i, i + rows), columns [j, j + columns).
struct Block {
  std::int64_t i, j, rows, columns;
};

template <class In, class Out>
class Epilogue {
 public:
  using Sum = Accumulator<In>;

  Epilogue(const Matmul& matmul, std::int64_t n)
      : p_(matmul), n_(n), bias_(static_cast<std::size_t>(n)) {
    for (std::int64_t c = 0; matmul.bias && c < n; ++c) {
      bias_[static_cast<std::size_t>(c)] =
          static_cast<Sum>(load(matmul.bias.template as<In>() + c));
    }
  }

  // sums [block.rows, block.columns] of row length ld, which may be the block of d itself.
  void finish(const Block& block, const Sum* sums, std::int64_t ld) const {
    const Sum* const bias = bias_.data() + block.j;
    if (p_.add) {
      const Out* const d = p_.d.template as<Out>();
      write(block, sums, ld, [=](Sum x, std::int64_t at, std::int64_t c) {
        return x + bias[c] + static_cast<Sum>(load(d + at));
      });
    } else if (p_.derivative != Activation::none) {
      const Out* const before = p_.derivative_at.template as<Out>();
      dispatch_activation(p_.derivative, [&](auto tag) {
        write(block, sums, ld, [=](Sum x, std::int64_t at, std::int64_t c) {
          const auto slope = activation_derivative<decltype(tag)::value, kAccuracyFor<Out>>(
              static_cast<Sum>(load(before + at)));
          return (x + bias[c]) * slope;
        });
      });
    } else if (p_.activation != Activation::none) {
      dispatch_activation(p_.activation, [&](auto tag) { activated(tag, block, bias, sums, ld); });
    } else {
      write(block, sums, ld, [=](Sum x, std::int64_t, std::int64_t c) { return x + bias[c]; });
    }
  }

 private:
  template <class Tag>
  void activated(Tag, const Block& block, const Sum* bias, const Sum* sums, std::int64_t ld) const {
    for_pieces(block, sums, ld,
               [=, this](const Sum* from, std::int64_t at, Piece piece, Sum* values) {
                 for (std::int64_t i = 0; i < piece.columns; ++i) {
                   values[i] = from[i] + bias[piece.first + i];
                 }
                 if (p_.before) {
                   store_row(values, piece.columns, p_.before.template as<Out>() + at);
                 }
                 for (std::int64_t i = 0; i < piece.columns; ++i) {
                   values[i] = activate<Tag::value, kAccuracyFor<Out>>(values[i]);
                 }
                 store_row(values, piece.columns, p_.d.template as<Out>() + at);
               });
  }

  // d = value(sum, place in d, column of the block).
  template <class Value>
  void write(const Block& block, const Sum* sums, std::int64_t ld, const Value& value) const {
    for_pieces(block, sums, ld,
               [=, this](const Sum* from, std::int64_t at, Piece piece, Sum* values) {
                 for (std::int64_t i = 0; i < piece.columns; ++i) {
                   values[i] = value(from[i], at + i, piece.first + i);
                 }
                 store_row(values, piece.columns, p_.d.template as<Out>() + at);
               });
  }

  // Calls body(sums, place in d, piece, room for its values) for pieces of rows: what they become
  // waits in L1 to be rounded.
  static constexpr std::int64_t kPiece = 256;
  struct Piece {
    std::int64_t first, columns;  // of the block
  };
  template <class Body>
  void for_pieces(const Block& block, const Sum* sums, std::int64_t ld, const Body& body) const {
    Sum values[kPiece] = {};
    for (std::int64_t row = 0; row < block.rows; ++row) {
      for (std::int64_t first = 0; first < block.columns; first += kPiece) {
        body(sums + row * ld + first, (block.i + row) * n_ + block.j + first,
             Piece{first, std::min(kPiece, block.columns - first)}, values);
      }
    }
  }

  const Matmul& p_;
  const std::int64_t n_;
  std::vector<Sum> bias_;  // zeros where there is none
};

}  // namespace
}  // namespace bloomery
