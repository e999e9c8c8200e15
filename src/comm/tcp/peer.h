// What goes on between this process and one other on a TcpWire.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <tuple>

#include "comm/tcp/socket.h"
#include "comm/wire.h"

namespace bloomery {

// A piece on its way, and the move() that waits for it.
struct Moving {
  WirePiece piece;
  int* left;              // pieces of its move() that are not done
  std::size_t moved = 0;  // bytes, of a large one
  bool done = false;
};

class Peer {
 public:
  Peer(int own_rank, int rank, Socket socket)
      : own_rank_(own_rank), rank_(rank), socket_(std::move(socket)) {}

  // The pieces stay until they are done, or until the peer is no longer used.
  void send(Moving& piece);
  void receive(Moving& piece);

  int descriptor() const { return gone_ ? -1 : socket_.descriptor(); }
  bool wants_to_write() const { return !out_.empty(); }
  bool gone() const { return gone_; }  // the other side has closed the connection

  // As much as the socket takes and gives at once. An Error when the two ranks disagree.
  void write();
  void read();

 private:
  struct Header {
    enum class Kind : std::uint32_t { message, announcement, request, chunk };
    Kind kind;
    std::uint32_t part;
    std::uint64_t bytes;  // of the message; of a chunk: what follows
    WireCall call;
  };
  using Label = std::tuple<std::uint32_t, bool, std::uint64_t, std::uint32_t>;
  struct Out {
    Header header;
    Moving* piece = nullptr;  // whose bytes follow
    const char* data = nullptr;
    std::size_t bytes = 0, written = 0;  // with the header
  };
  struct Early {  // came before its receiver
    Header header;
    std::string bytes;
    bool complete = false;
  };

  static Label label(const WireCall& call, std::uint32_t part) {
    return {call.group, call.name == WireCall::Name::exchange, call.number, part};
  }
  static void finish(Moving& piece) {
    piece.done = true;
    --*piece.left;
  }
  void post(Header::Kind kind, Moving& piece);
  void post_chunk(Moving& piece);
  void written(const Out& out);
  void take_header();
  void take_payload();
  void check_agrees(const Header& header, const WirePiece& piece) const;

  const int own_rank_, rank_;
  Socket socket_;
  bool gone_ = false;
  std::deque<Out> out_;
  std::map<Label, Moving*> sends_;     // announced
  std::map<Label, Moving*> receives_;  // posted
  std::map<Label, Early> early_;

  Header header_{};
  std::size_t header_bytes_ = 0;  // that were read
  char* payload_ = nullptr;
  std::size_t payload_left_ = 0;
  Moving* into_ = nullptr;  // whose payload it is; null: early_ keeps it
};

}  // namespace bloomery
