#include "comm/tcp/peer.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace bloomery {
namespace {

constexpr std::size_t kSmall = 1 << 16;        // bytes of a message that goes out unasked
constexpr std::size_t kChunk = 1 << 20;        // bytes after which others may pass
constexpr std::size_t kReadAtOnce = 4u << 20;  // before other peers have their turn

}  // namespace

void Peer::send(Moving& piece) {
  if (piece.piece.bytes <= kSmall) {
    post(Header::Kind::message, piece);
  } else {
    sends_[label(piece.piece.call, piece.piece.part)] = &piece;
    post(Header::Kind::announcement, piece);
  }
}

void Peer::receive(Moving& piece) {
  const WirePiece& p = piece.piece;
  const Label key = label(p.call, p.part);
  const auto found = early_.find(key);
  if (found == early_.end()) {
    receives_[key] = &piece;
    return;
  }
  Early& early = found->second;
  check_agrees(early.header, p);
  if (early.header.kind == Header::Kind::announcement) {
    receives_[key] = &piece;
    post(Header::Kind::request, piece);
  } else if (early.complete) {
    std::memcpy(p.data, early.bytes.data(), p.bytes);
    finish(piece);
  } else {  // it is being read: what came goes over, the rest follows
    const std::size_t had = early.header.bytes - payload_left_;
    std::memcpy(p.data, early.bytes.data(), had);
    payload_ = static_cast<char*>(p.data) + had;
    into_ = &piece;
  }
  early_.erase(found);
}

void Peer::post(Header::Kind kind, Moving& piece) {
  const WirePiece& p = piece.piece;
  Out out{.header = {kind, p.part, p.bytes, p.call}};
  if (kind == Header::Kind::message) {
    out.piece = &piece;
    out.data = static_cast<const char*>(p.data);
    out.bytes = p.bytes;
  }
  out_.push_back(out);
}

void Peer::post_chunk(Moving& piece) {
  const WirePiece& p = piece.piece;
  const std::size_t bytes = std::min(kChunk, p.bytes - piece.moved);
  out_.push_back({.header = {Header::Kind::chunk, p.part, bytes, p.call},
                  .piece = &piece,
                  .data = static_cast<const char*>(p.data) + piece.moved,
                  .bytes = bytes});
}

void Peer::write() {
  while (!out_.empty() && !gone_) {
    Out& out = out_.front();
    const std::size_t header = std::min(out.written, sizeof(Header));
    const std::size_t data = out.written - header;
    iovec parts[] = {{reinterpret_cast<char*>(&out.header) + header, sizeof(Header) - header},
                     {const_cast<char*>(out.data) + data, out.bytes - data}};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = out.bytes > 0 ? 2 : 1;
    const ssize_t count = sendmsg(socket_.descriptor(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count < 0) {
      gone_ = errno != EAGAIN && errno != EWOULDBLOCK;
      return;
    }
    out.written += static_cast<std::size_t>(count);
    if (out.written == sizeof(Header) + out.bytes) {
      const Out done = out;
      out_.pop_front();
      written(done);
    }
  }
}

void Peer::written(const Out& out) {
  if (out.piece == nullptr) {
    return;
  }
  out.piece->moved += out.bytes;
  if (out.piece->moved == out.piece->piece.bytes) {
    finish(*out.piece);
  } else {
    post_chunk(*out.piece);
  }
}

void Peer::read() {
  std::size_t total = 0;
  while (total < kReadAtOnce && !gone_) {
    const bool in_header = header_bytes_ < sizeof header_;
    char* const to = in_header ? reinterpret_cast<char*>(&header_) + header_bytes_ : payload_;
    const std::size_t wanted = in_header ? sizeof header_ - header_bytes_ : payload_left_;
    const ssize_t count = recv(socket_.descriptor(), to, wanted, MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      return;
    }
    if (count <= 0) {
      gone_ = true;
      return;
    }
    const auto got = static_cast<std::size_t>(count);
    total += got;
    if (in_header) {
      header_bytes_ += got;
      if (header_bytes_ == sizeof header_) {
        take_header();
      }
    } else {
      payload_ += got;
      payload_left_ -= got;
    }
    if (header_bytes_ == sizeof header_ && payload_left_ == 0) {
      take_payload();
      header_bytes_ = 0;
    }
  }
}

// Finds where the bytes behind the header go.
void Peer::take_header() {
  const Label key = label(header_.call, header_.part);
  payload_left_ = 0;
  into_ = nullptr;
  if (header_.kind == Header::Kind::request) {
    post_chunk(*sends_.at(key));
    sends_.erase(key);
    return;
  }
  const auto posted = receives_.find(key);
  if (header_.kind == Header::Kind::chunk) {
    into_ = posted->second;  // asked for, so it is there
    payload_ = static_cast<char*>(into_->piece.data) + into_->moved;
    payload_left_ = header_.bytes;
  } else if (posted == receives_.end()) {
    Early& early = early_[key];
    early.header = header_;
    if (header_.kind == Header::Kind::message) {
      early.bytes.resize(header_.bytes);
      payload_ = early.bytes.data();
      payload_left_ = header_.bytes;
    }
  } else {
    check_agrees(header_, posted->second->piece);
    if (header_.kind == Header::Kind::announcement) {
      post(Header::Kind::request, *posted->second);
    } else {
      into_ = posted->second;
      receives_.erase(posted);
      payload_ = static_cast<char*>(into_->piece.data);
      payload_left_ = header_.bytes;
    }
  }
}

void Peer::take_payload() {
  const Label key = label(header_.call, header_.part);
  if (into_ == nullptr) {
    const auto early = early_.find(key);
    if (early != early_.end()) {
      early->second.complete = true;
    }
    return;
  }
  if (header_.kind == Header::Kind::chunk) {
    into_->moved += header_.bytes;
    if (into_->moved < into_->piece.bytes) {
      return;
    }
    receives_.erase(key);
  }
  finish(*into_);
}

void Peer::check_agrees(const Header& header, const WirePiece& piece) const {
  const bool exchange = piece.call.name == WireCall::Name::exchange;
  check(header.call.same(piece.call) || !exchange, "exchange: rank ", rank_, " sends ",
        header.call.count, " ", header.call.dtype, ", but rank ", own_rank_, " receives ",
        piece.call.count, " ", piece.call.dtype);
  check(header.call.same(piece.call), "the ranks disagree: rank ", rank_, " calls ",
        header.call.text(), ", rank ", own_rank_, " calls ", piece.call.text());
  check(header.bytes == piece.bytes, piece.call.text(), ": rank ", rank_, " sends ", header.bytes,
        " bytes to rank ", own_rank_, ", which expects ", piece.bytes);
}

}  // namespace bloomery
