package source

// LocalPath is the path of a Source that is a file of the operating system: a Path, mapped or
// through a Pool or not. It is for what is kept beside the file.
func LocalPath(s Source) (path string, ok bool) {
	switch s := s.(type) {
	case poolSource:
		return LocalPath(s.of)
	case interface{ localPath() string }:
		return s.localPath(), true
	}
	return "", false
}

func (f file) localPath() string { return string(f) }
