"""Operations of array libraries while a tape records."""
