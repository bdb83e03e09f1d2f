# cmake -D SOURCE=src -D OUT=folder -D CONTRACT=file -D VERSION=x.y.z -P ElementHeaders.cmake
#
# The headers that an element from outside the tree needs: those below, and all that they include. They are written to
# OUT/include/sluice with their includes of each other as "sluice/ROOM/NAME.h". CONTRACT is a header with a number of
# their text, which tells a plug-in that was built against others.
cmake_minimum_required(VERSION 3.25)

set(roots engine/plugin.h engine/element.h engine/batch_edit.h engine/emitter.h engine/traits.h engine/jobs.h engine/view.h engine/tables.h
    engine/port_table.h engine/fusion.h engine/counted_rules.h engine/named_sets.h engine/api.h engine/verb.h engine/advice.h engine/section_files.h
    engine/stream_source.h engine/service.h engine/self_check.h engine/calibration.h engine/answers.h base/settings.h base/option.h
    base/units.h base/file.h base/published.h packet/reason.h packet/headers.h packet/metadata.h packet/parse.h packet/checksum.h
    packet/ip_address.h device/gpu.h device/launch.h device/cuda_check.h device/cuda_event.h device/cuda_stream.h function/policer.h)
set(generated engine/contract.h)

set(wanted ${roots})
set(seen)
set(sum)
while(wanted)
  list(POP_FRONT wanted header)
  if(header IN_LIST seen OR header IN_LIST generated)
    continue()
  endif()
  list(APPEND seen ${header})
  file(STRINGS ${SOURCE}/${header} includes REGEX "^#include \"[a-z0-9_/]+\\.(h|cuh)\"")
  foreach(line ${includes})
    string(REGEX REPLACE "^#include \"([^\"]+)\".*" "\\1" included "${line}")
    list(APPEND wanted ${included})
  endforeach()
endwhile()

list(SORT seen)
foreach(header ${seen})
  file(SHA256 ${SOURCE}/${header} one)
  string(APPEND sum "${header} ${one}\n")
endforeach()
string(SHA256 number "${sum}${VERSION}")
string(SUBSTRING ${number} 0 12 number)
set(text "// Made by cmake/ElementHeaders.cmake.
#pragma once

#define SLUICE_CONTRACT \"${number}\"
#define SLUICE_CONTRACT_VERSION \"${VERSION}\"
")

file(REMOVE_RECURSE ${OUT}/include)
foreach(header ${seen})
  file(READ ${SOURCE}/${header} content)
  string(REGEX REPLACE "#include \"([a-z0-9_/]+\\.(h|cuh))\"" "#include \"sluice/\\1\"" content "${content}")
  file(WRITE ${OUT}/include/sluice/${header} "${content}")
endforeach()
file(WRITE ${OUT}/include/sluice/engine/contract.h "${text}")
file(RENAME ${OUT}/include/sluice/engine/plugin.h ${OUT}/include/sluice/plugin.h)
# Its time is that of the last look; what includes it is compiled again only where it has changed.
file(CONFIGURE OUTPUT ${CONTRACT} CONTENT "${text}" @ONLY)
