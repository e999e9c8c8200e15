// A new event at the present end of a stream.
#pragma once

#include <memory>

#include "device/stream.h"

namespace bloomery {

inline std::shared_ptr<Event> recorded(Stream& stream) {
  auto event = std::make_shared<Event>(stream.device());
  event->record(stream);
  return event;
}

}  // namespace bloomery
