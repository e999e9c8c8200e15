#include "comm/watch/status.h"

#include "base/fields.h"

namespace bloomery {

std::string RankStatus::bytes() const {
  FieldWriter out;
  out.number<std::int32_t>(rank).text(host).number(process).text(position);
  out.number(static_cast<std::uint32_t>(calls.size()));
  for (const CallRecord& call : calls) {
    out.text(call.text).text(call.group).number(static_cast<std::uint32_t>(call.members.size()));
    for (const int member : call.members) {
      out.number<std::int32_t>(member);
    }
    out.number(call.group_id).number(call.number).text(call.position).number(call.state);
    out.number(call.called_ago).number(call.waited);
  }
  return out.take();
}

RankStatus RankStatus::from(std::string_view bytes) {
  FieldReader in(bytes);
  RankStatus status;
  status.rank = in.number<std::int32_t>();
  status.host = in.text();
  status.process = in.number<std::int64_t>();
  status.position = in.text();
  for (auto left = in.number<std::uint32_t>(); left > 0; --left) {
    CallRecord call;
    call.text = in.text();
    call.group = in.text();
    for (auto members = in.number<std::uint32_t>(); members > 0; --members) {
      call.members.push_back(in.number<std::int32_t>());
    }
    call.group_id = in.number<std::uint32_t>();
    call.number = in.number<std::int64_t>();
    call.position = in.text();
    call.state = in.number<CallRecord::State>();
    call.called_ago = in.number<double>();
    call.waited = in.number<double>();
    status.calls.push_back(std::move(call));
  }
  return status;
}

const CallRecord* RankStatus::waiting() const {
  for (const CallRecord& call : calls) {
    if (call.state != CallRecord::State::done) {
      return &call;
    }
  }
  return nullptr;
}

}  // namespace bloomery
