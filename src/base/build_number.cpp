#include "base/build_number.h"

#include <elf.h>
#include <link.h>

#include <cstring>
#include <string_view>

#include "base/hash.h"
#include "base/round_up.h"
#include "build_config.h"

namespace bloomery {
namespace {

constexpr std::string_view kOwner{"GNU", 4};  // with its zero

// The first bytes of the build id among these notes; 0: it is not there.
std::uint64_t build_id_in(const char* notes, std::size_t bytes) {
  for (const char* const end = notes + bytes; notes + sizeof(ElfW(Nhdr)) <= end;) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes, sizeof note);
    const char* const owner = notes + sizeof note;
    const char* const content = owner + round_up<std::size_t>(note.n_namesz, 4);
    std::uint64_t id = 0;
    if (note.n_type == NT_GNU_BUILD_ID && std::string_view(owner, note.n_namesz) == kOwner &&
        note.n_descsz >= sizeof id) {
      for (std::size_t i = 0; i < sizeof id; ++i) {  // as `file` and `readelf -n` print it
        id = id << 8 | static_cast<unsigned char>(content[i]);
      }
      return id;
    }
    notes = content + round_up<std::size_t>(note.n_descsz, 4);
  }
  return 0;
}

// The program comes first of what is loaded.
int look_at_first(dl_phdr_info* info, std::size_t, void* id) {
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    auto& found = *static_cast<std::uint64_t*>(id);
    if (part.p_type == PT_NOTE && found == 0) {
      found =
          build_id_in(reinterpret_cast<const char*>(info->dlpi_addr + part.p_vaddr), part.p_memsz);
    }
  }
  return 1;
}

}  // namespace

std::uint64_t build_number() {
  static const std::uint64_t number = [] {
    std::uint64_t id = 0;
    dl_iterate_phdr(look_at_first, &id);
    return id != 0 ? id : xxh3(std::string_view(build::version));
  }();
  return number;
}

}  // namespace bloomery
