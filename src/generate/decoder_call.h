// Decoders of a model that tensor ranks divide. The first rank has the engine and decides; it tells
// the others over the host group what its decoders do, and they do the same with their parts. What
// only the device knows comes to them by a broadcast there, so that no host waits for a device.
#pragma once

#include <string>
#include <vector>

#include "comm/mesh.h"
#include "models/model.h"
#include "tokenizer/tokenizer.h"

namespace bloomery {

// Something that a decoder does, with the arguments of its function.
struct DecoderCall {
  enum class Kind : std::uint8_t {
    make,
    end,
    read,
    feed,
    extend,
    select,
    forget,
    set_pages,
    copy_slot,
    step,
    leave,  // no decoder's: the other ranks are done
  };
  Kind kind = Kind::leave;
  std::int64_t decoder = 0;  // its number
  std::vector<std::int64_t> numbers = {};
  std::vector<std::vector<TokenId>> tokens = {};

  std::string bytes() const;
  static DecoderCall of_bytes(const std::string& bytes);
  bool operator==(const DecoderCall&) const = default;
};

// The first rank's part: tells the others, or nobody where there are none. Waits until they have
// begun, though not until they have done, what they were told before.
void tell(Mesh& mesh, const DecoderCall& call);
// What the other ranks do meanwhile, until the first one dismisses them: they have no end of their
// own, and may wait for days. An Error ends all ranks.
void follow_decoders(const Model& model, Stream& stream, Mesh& mesh);
void dismiss_followers(Mesh& mesh);

}  // namespace bloomery
