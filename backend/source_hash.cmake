# cmake -DOUT=header -DSOURCES=file;… -P source_hash.cmake: writes a hash of the compiler's sources, which is part of every
# cache key, so that a rebuilt compiler never finds what another one generated.
set(all "")
foreach(source IN LISTS SOURCES)
  file(SHA256 ${source} hash)
  string(APPEND all ${hash})
endforeach()
string(SHA256 hash "${all}")
string(SUBSTRING ${hash} 0 16 hash)
file(WRITE ${OUT} "#pragma once\n#define KILN_SOURCE_HASH \"${hash}\"\n")
