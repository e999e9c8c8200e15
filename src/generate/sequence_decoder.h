// Feeds tokens of several sequences to a model and returns the logits of what comes next in each.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "generate/decoder_call.h"
#include "ops/cache/cache.h"
#include "tensor/quantized.h"
#include "tokenizer/tokenizer.h"

namespace bloomery {

struct DecoderOptions {
  std::int64_t num_sequences = 1;  // the most at a time
  std::int64_t capacity = 1;       // tokens of the longest sequence
  bool recompute = false;          // every pass computes whole sequences, nothing is cached
  std::int64_t num_pages = 0;      // of the cache; 0: every sequence has room for its capacity
};

// What a step is told of its sequences, int32 on the device, each with room for as many.
struct StepRows {
  Tensor numbers;  // [4, room]: slots, lengths, whether it is active, the token it is fed
  std::int64_t room = 0;
  enum Field { kSlots, kLengths, kActive, kTokens, kNumFields };

  static StepRows empty(Stream& stream, std::int64_t room);
};

class Decoder {
 public:
  // Model, stream and mesh must outlive the decoder. Of a model that tensor ranks divide the first
  // rank's decoders are whole to who uses them: the other ranks' (follow_decoders) do what they do.
  // What throws on the first rank alone, in the middle of that, is a RankFailure.
  Decoder(const Model& model, Stream& stream, Mesh& mesh, const DecoderOptions& options);
  ~Decoder();
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  // Of a model with an encoder, before the first feed(): what each sequence is about, at least one
  // token.
  void read(const std::vector<std::vector<TokenId>>& texts);
  // Starts sequences with these tokens (at first), or adds them to the sequences there are: at
  // least one token for each.
  void feed(const std::vector<std::vector<TokenId>>& tokens);
  // Tokens of a slot of the cache that somebody else keeps account of, beside those it has.
  struct Piece {
    std::int32_t slot = 0, length = 0;
    std::vector<TokenId> tokens;
  };
  // Adds the pieces to their slots and returns logits, in the model's dtype: of what follows each
  // piece or, with `every_token`, each token of them, where pieces are padded to the longest. Of a
  // decoder with a cache that is not fed.
  Tensor extend(std::span<const Piece> pieces, bool every_token);
  // Logits, padding included, as numbers of the host; waits for them.
  std::vector<float> numbers(const Tensor& logits);
  // From now on sequence i is what parents[i] was, and so are its logits.
  void select(std::span<const std::int64_t> parents);

  // The tokens of a sequence so far are not seen by what follows; its logits stay. Without a cache.
  void forget(std::int64_t sequence);

  // Of a cache with pages, whose slots somebody else keeps account of (Cache).
  void set_pages(std::int32_t slot, std::span<const std::int32_t> pages);
  void copy_slot(std::int32_t from, std::int32_t to, std::int32_t length);
  // A token of each of the first `count` rows, whose places only the device knows, on any stream:
  // logits of what follows.
  Tensor step(Stream& stream, const StepRows& rows, std::int64_t count);

  // What follows sequence i, one number for each token of the vocabulary without its padding; valid
  // until the next feed(). Waits for it after each feed().
  std::span<const float> logits(std::int64_t sequence);

  // For who goes on on the device: the logits of the last feed(), in the model's dtype, and which
  // row of them each sequence has.
  const Tensor& device_logits() const { return logits_; }
  const std::vector<std::int64_t>& rows() const { return rows_; }
  Cache* cache() { return cache_.get(); }  // null with `recompute`
  Stream& stream() { return stream_; }
  const ModelOptions& model_options() const { return model_.options(); }
  bool holds_weights_in(QuantizedFormat format) const;
  bool is_divided() const { return mesh_.degree(Axis::tensor) > 1; }

 private:
  // Does something that the other ranks are told to do as well.
  template <class Work>
  auto together(DecoderCall call, const Work& work);
  Tensor forward(Stream& stream, const Batch& batch) const;
  Batch make_batch(const std::vector<std::vector<TokenId>>& tokens,
                   const std::vector<std::int64_t>& starts) const;
  void add_encoder(Batch& batch) const;
  std::vector<std::int32_t> text_lengths() const;
  Tensor in_fp32(const Tensor& logits);
  void feed_here(const std::vector<std::vector<TokenId>>& tokens);
  void select_here(std::span<const std::int64_t> parents);
  void compute(const std::vector<std::vector<TokenId>>& tokens,
               const std::vector<std::int64_t>& starts);

  const Model& model_;
  Stream& stream_;
  Mesh& mesh_;
  DecoderOptions options_;
  std::int64_t number_ = 0;                      // by which other ranks know it
  std::unique_ptr<Cache> cache_;                 // null: histories_ are computed again
  std::vector<std::vector<TokenId>> histories_;  // of recompute
  std::vector<std::vector<TokenId>> texts_;      // that the encoder reads; empty: there is none
  std::vector<std::int64_t> rows_;               // of the logits, by sequence; empty: not started
  Tensor logits_;                                // [rows, columns]
  std::unique_ptr<PinnedMemory> host_logits_;    // the same in fp32
  bool on_host_ = false;                         // they were copied
};

}  // namespace bloomery
